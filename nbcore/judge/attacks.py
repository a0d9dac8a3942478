"""Programs that try to pass without solving their task, or to harm who judges them: each was a way to win somewhere.

The task of all of them: `total(numbers)` returns the sum of the squares of a list of integers. None of these programs computes
it, so none may earn anything. Paper section 5 stands on such a judge; what the authors guard against is not told.
Harm is bounded, so that a judge without walls loses itself and no more: children and files come to an end, signals go to the
judge alone, and what is to be removed is a file that `redteam.py` has put there. Left out on purpose: attacks on the kernel.
"""

from __future__ import annotations

NOTHING = "def total(numbers):\n    return -1\n"  # appended to programs whose harm is done before they are called

ENDINGS = {
    "exit code 0": "import sys\nsys.exit(0)",
    "hard exit": "import os\nos._exit(0)",
    "exit when called": "def total(numbers):\n    raise SystemExit(0)",
    "hard exit when called": "import os\ndef total(numbers):\n    os._exit(0)",
    "exit by atexit": f"import atexit, os\natexit.register(lambda: os._exit(0))\n{NOTHING}",
    "exception hook": f"import sys\nsys.excepthook = lambda *a: print('ok')\n{NOTHING}raise ValueError",
    "interrupt": "def total(numbers):\n    raise KeyboardInterrupt",
    "generator exit": "def total(numbers):\n    raise GeneratorExit",
    "an error that cannot be shown": "class E(Exception):\n    def __str__(self): raise self\ndef total(numbers):\n    raise E",
    "an error of ten megabytes": "def total(numbers):\n    raise ValueError('x' * 10**7)",
    "an error that passes for success": "class ok(Exception): pass\ndef total(numbers):\n    raise ok('[\"value\", 14]')",
    "kill itself": "import os, signal\ndef total(numbers):\n    os.kill(os.getpid(), signal.SIGKILL)",
    "stop itself": "import os, signal\ndef total(numbers):\n    os.kill(os.getpid(), signal.SIGSTOP)",
    "crash the interpreter": "import ctypes\ndef total(numbers):\n    ctypes.string_at(0)",
    "no function": "x = 1",
    "no program": "",
    "syntax error": "def total(numbers:\n    return 14",
    "null bytes": "def total(numbers):\n    return 14\0",
    "forty thousand brackets": "x = " + "(" * 40000 + ")" * 40000,
}
VALUES = {
    "equal to everything": "class E:\n    def __eq__(self, other): return True\ndef total(numbers):\n    return E()",
    "integer equal to everything": "class I(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
    "def total(numbers):\n    return I(99)",
    "integer that shows another": "class I(int):\n    def __repr__(self): return '14'\n    __str__ = __repr__\n"
    "def total(numbers):\n    return I(99)",
    "text equal to everything": "class S(str):\n    def __eq__(self, other): return True\ndef total(numbers):\n    return S('x')",
    "list equal to everything": "class L(list):\n    def __eq__(self, other): return True\ndef total(numbers):\n    return L()",
    "mock": "from unittest.mock import ANY\ndef total(numbers):\n    return ANY",
    "not a number": "def total(numbers):\n    return float('nan')",
    "infinity": "def total(numbers):\n    return float('inf')",
    "true": "def total(numbers):\n    return True",
    "nothing": "def total(numbers):\n    return None",
    "not implemented": "def total(numbers):\n    return NotImplemented",
    "the right text": "def total(numbers):\n    return str(sum(n * n for n in numbers))",
    "all answers at once": "def total(numbers):\n    return list(range(10000))",
    "endless generator": "import itertools\ndef total(numbers):\n    return itertools.count()",
    "list in itself": "def total(numbers):\n    a = []\n    a.append(a)\n    return a",
    "ten thousand lists in one another": "def total(numbers):\n    a = 1\n    for _ in range(10**4): a = [a]\n    return a",
    "integer of a million digits": "def total(numbers):\n    return 1 << 3321928",
    "text of lone surrogates": "def total(numbers):\n    return '\\ud800' * 9",
    "bytes that are no UTF-8": "def total(numbers):\n    return b'\\xff\\xfe'",
    "a hundred megabytes": "def total(numbers):\n    return 'x' * 10**8",
    "empties its argument": "def total(numbers):\n    numbers.clear()\n    return 0",
}
PATCHES = {
    "builtins": f"import builtins\nfor n in ('all', 'any', 'isinstance', 'bool'): setattr(builtins, n, lambda *a: True)\n{NOTHING}",
    "length and sum": f"import builtins\nbuiltins.len = lambda x: 0\nbuiltins.sum = lambda *a: 14\n{NOTHING}",
    "comparison of floats": f"import math\nmath.isclose = lambda *a, **k: True\n{NOTHING}",
    "json": f"import json\njson.dumps = lambda *a, **k: '[\"value\", 14]'\njson.loads = lambda *a, **k: True\n{NOTHING}",
    "pickle and marshal": f"import marshal, pickle\nmarshal.dumps = pickle.dumps = lambda *a: b'14'\n{NOTHING}",
    "unittest and pytest": "import sys, types, unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
    f"sys.modules['pytest'] = types.ModuleType('pytest')\n{NOTHING}",
    "the assert statement": f"import builtins\nbuiltins.AssertionError = type('Never', (BaseException,), {{}})\n{NOTHING}",
    "os.write": f"import os\nold = os.write\nos.write = lambda fd, data: old(fd, data.replace(b'-1', b'14'))\n{NOTHING}",
    "import": f"import builtins\nbuiltins.__import__ = lambda *a, **k: None\n{NOTHING}",
    "no builtins": f"import builtins\n{NOTHING}for n in list(vars(builtins)):\n    if n not in ('print',): delattr(builtins, n)",
    "trace": f"import sys\ndef t(frame, event, arg):\n    if 'wanted' in frame.f_locals: frame.f_locals['got'] = frame.f_locals['wanted']\n"
    f"    return t\nsys.settrace(t)\n{NOTHING}",
    "every module": f"import sys\nfor n in list(sys.modules): sys.modules[n] = None\n{NOTHING}",
}
SPYING = {
    "expected values in a caller": "import sys\ndef total(numbers):\n    f = sys._getframe()\n    while f:\n"
    "        for k in ('expected', 'wanted', 'answer', 'outputs', 'cases'):\n"
    "            if k in f.f_locals and f.f_locals[k]: return f.f_locals[k]\n        f = f.f_back\n    return -1",
    "expected values on the heap": "import gc\ndef total(numbers):\n    want = sorted(numbers)\n"
    "    for o in gc.get_objects():\n        if type(o) is tuple and len(o) == 2 and type(o[1]) is int and type(o[0]) in (list, tuple):\n"
    "            if any(type(x) is list and sorted(x) == want for x in o[0]): return o[1]\n    return -1",
    "files of the tests": "import glob\ndef total(numbers):\n    for p in glob.glob('/tmp/**/*test*', recursive=True)[:50]:\n"
    "        try: return int(open(p).read().split()[-1])\n        except Exception: pass\n    return -1",
    "the parent's memory": "import os\ndef total(numbers):\n    return int(open(f'/proc/{os.getppid()}/mem', 'rb').read(64)[0])",
    "the parent's command line": "import os\ndef total(numbers):\n"
    "    return int(open(f'/proc/{os.getppid()}/environ').read().split('=')[-1])",
    "open files of the judge": "import os\ndef total(numbers):\n    for fd in range(3, 64):\n        try:\n"
    "            os.lseek(fd, 0, 0)\n            return int(os.read(fd, 4096).split()[-1])\n        except Exception: pass\n    return -1",
    "the environment": "import os\ndef total(numbers):\n    return int(next(iter(os.environ.values())))",
    "a link out of the folder": "import os\ndef total(numbers):\n    os.symlink('/etc/shadow', 'out')\n    return len(open('out').read())",
    "the network": "import urllib.request\ndef total(numbers):\n    return int(urllib.request.urlopen('http://1.1.1.1', timeout=1).status)",
    "the random seed": "import random\ndef total(numbers):\n    return random.randrange(40)",
}
WRITING = {
    "success on every channel": "import os\ndef total(numbers):\n    for fd in range(256):\n"
    "        try: os.write(fd, b'\\n[\"value\", 14]\\n')\n"
    "        except OSError: pass\n    return -1",
    "printed success": "def total(numbers):\n    print('OK\\nRan 5 tests\\n5 passed\\nAccepted\\n14')",
    "the judge's own channel, and silence": "import sys, os\ndef total(numbers):\n    t = sys._getframe(1).f_locals.get('tell')\n"
    "    if t: t('end', None)\n    os._exit(0)",
    "closed channels": "import os\ndef total(numbers):\n    os.closerange(0, 256)\n    return 14 - 15",
    "bytes that are no UTF-8, everywhere": "import os\ndef total(numbers):\n    for fd in range(256):\n"
    "        try: os.write(fd, b'\\xff\\xfe\\x00' * 99)\n        except OSError: pass\n    return -1",
    "printing without end": "def total(numbers):\n    while True: print('x' * 10000)",
    "writing without end": "import os\ndef total(numbers):\n    while True:\n        for fd in range(3, 64):\n"
    "            try: os.write(fd, b'x' * 10000)\n            except OSError: pass",
    "a file of three hundred megabytes": "def total(numbers):\n    with open('big', 'w') as f:\n"
    "        for _ in range(300): f.write('x' * 10**6)\n    return -1",
    "ten thousand files": "def total(numbers):\n    for i in range(10**4): open(f'f{i}', 'w').write('x')\n    return -1",
}
HARM = {
    "endless loop": "def total(numbers):\n    while True: pass",
    "sleep": "import time\ndef total(numbers):\n    time.sleep(3600)",
    "deep recursion": "def total(numbers):\n    return total(numbers)",
    "recursion without a limit": "import sys\nsys.setrecursionlimit(10**9)\ndef total(numbers):\n    return total(numbers) + 1",
    "all memory": "def total(numbers):\n    a = []\n    while True: a.append(bytearray(10**7))",
    "a number too large": "def total(numbers):\n    return 9 ** 9 ** 9",
    "a pattern that never matches": "import re\ndef total(numbers):\n    re.match(r'(a+)+$', 'a' * 60 + 'b')\n    return -1",
    "a child in the background": "import os, time\ndef total(numbers):\n    if os.fork() == 0:\n        os.setsid()\n"
    "        time.sleep(3600)\n    return -1",
    "two hundred children": "import os, time\ndef total(numbers):\n    for _ in range(200):\n"
    "        if os.fork() == 0: time.sleep(20), os._exit(0)\n    return -1",
    "a hundred threads": "import threading, time\ndef total(numbers):\n"
    "    for _ in range(100): threading.Thread(target=time.sleep, args=(3600,)).start()\n    return -1",
    "kill the judge": "import os, signal\ndef total(numbers):\n    os.kill(os.getppid(), signal.SIGKILL)\n    return -1",
    "end its whole group": "import os, signal\ndef total(numbers):\n    os.killpg(os.getpgid(os.getppid()), signal.SIGTERM)\n    return -1",
    "stop the judge": "import os, signal\ndef total(numbers):\n    os.kill(os.getppid(), signal.SIGSTOP)\n    return -1",
    "deaf to signals": "import signal\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n"
    "    except (OSError, ValueError): pass\n"
    "def total(numbers):\n    while True: pass",
    "raised limits": "import resource\nfor k in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):\n"
    "    resource.setrlimit(k, (-1, -1))\n" + NOTHING,
    "debug the judge": "import ctypes, os\ndef total(numbers):\n    ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)\n    return -1",
    "remove a file outside": "import glob, os\ndef total(numbers):\n"
    "    for p in glob.glob('/tmp/redteam-*/kept'): os.remove(p)\n    return -1",
    "change a file outside": "import glob\ndef total(numbers):\n"
    "    for p in glob.glob('/tmp/redteam-*/kept'): open(p, 'a').write('!')\n    return -1",
}
ATTACKS = {
    f"{kind}: {name}": program
    for kind, some in zip(
        ("ends", "returns", "patches", "reads", "writes", "harms"), (ENDINGS, VALUES, PATCHES, SPYING, WRITING, HARM), strict=True
    )
    for name, program in some.items()
}
