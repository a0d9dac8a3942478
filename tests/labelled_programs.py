"""120 small Python programs, each labelled with its time-complexity class.

Fifteen rows for each of the eight classes.  Every program defines ``f``; ``make`` is an
expression over ``rng`` (a random.Random) and ``n`` (an int >= 2) that gives the tuple of
arguments.  The label is the worst-case CPython cost (amortised where usual) in n, where n
is what ``make`` scales with: a length, the value of an integer argument, or the side of an
n x n matrix.  Written by hand from general knowledge, without reading what it tests.
"""

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Labelled:
    name: str
    label: str
    source: str
    make: str


PROGRAMS = [
    # ---------------------------------------------------------------- O(1)
    Labelled("median_of_sorted", "O(1)", dedent("""\
        def f(xs):
            mid = len(xs) // 2
            if len(xs) % 2 == 1:
                return xs[mid]
            return (xs[mid - 1] + xs[mid]) / 2
        """), "(sorted(rng.randint(0, 1000) for _ in range(n)),)"),
    Labelled("sum_of_odds_formula", "O(1)", dedent("""\
        def f(n):
            if n < 0:
                return 0
            total = n * (n + 1) // 2
            evens = (n // 2) * (n // 2 + 1)
            return total - evens
        """), "(n,)"),
    Labelled("zeller_weekday", "O(1)", dedent("""\
        NAMES = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"]

        def f(year, month, day):
            if month < 3:
                month += 12
                year -= 1
            k = year % 100
            j = year // 100
            h = (day + 13 * (month + 1) // 5 + k + k // 4 + j // 4 + 5 * j) % 7
            return NAMES[h]
        """), "(1900 + n, rng.randint(1, 12), rng.randint(1, 28))"),
    Labelled("price_lookup", "O(1)", dedent("""\
        def f(prices, item):
            price = prices.get(item, 0)
            if item not in prices:
                raise KeyError(item)
            if price > 5:
                price = price * 9 // 10
            return {"item": item, "price": price, "stocked": len(prices)}
        """), "({'k%d' % i: rng.randint(1, 9) for i in range(n)}, 'k%d' % (n - 1))"),
    Labelled("first_pair_product", "O(1)", dedent("""\
        def f(xs):
            for i in range(len(xs)):
                for j in range(i + 1, len(xs)):
                    return xs[i] * xs[j]
            return None
        """), "([rng.randint(0, 99) for _ in range(n)],)"),
    Labelled("reverse_bits_32", "O(1)", dedent("""\
        def f(x):
            x &= 0xFFFFFFFF
            out = 0
            for i in range(32):
                if (x >> i) & 1:
                    out |= 1 << (31 - i)
            return out
        """), "(n,)"),
    Labelled("pythagorean_under_13", "O(1)", dedent("""\
        def f(scale):
            found = []
            for a in range(1, 13):
                for b in range(a, 13):
                    for c in range(b, 18):
                        if a * a + b * b == c * c:
                            found.append((a * scale, b * scale, c * scale))
            return found
        """), "(n,)"),
    Labelled("head_tail_average", "O(1)", dedent("""\
        def f(readings):
            head = readings[:10]
            tail = readings[-10:]
            before = sum(head) / len(head)
            after = sum(tail) / len(tail)
            return round(after - before, 3)
        """), "([rng.randint(0, 500) for _ in range(n)],)"),
    Labelled("ring_buffer", "O(1)", dedent("""\
        class Ring:
            def __init__(self, size):
                self.slots = [None] * size
                self.at = 0

            def push(self, item):
                self.slots[self.at] = item
                self.at = (self.at + 1) % len(self.slots)

            def total(self):
                return sum(s for s in self.slots if s is not None)

        def f(start):
            ring = Ring(16)
            for k in range(40):
                ring.push(start + k)
            return ring.total()
        """), "(n,)"),
    Labelled("second_in_heap", "O(1)", dedent("""\
        def f(heap):
            if len(heap) < 2:
                return None
            if len(heap) == 2:
                return heap[1]
            return min(heap[1], heap[2])
        """), "(sorted(rng.randint(0, 10**6) for _ in range(n)),)"),
    Labelled("end_to_end_slope", "O(1)", dedent("""\
        import math

        def f(points):
            (x0, y0), (x1, y1) = points[0], points[-1]
            dx, dy = x1 - x0, y1 - y0
            length = math.hypot(dx, dy)
            if dx == 0:
                return math.inf, length
            return dy / dx, length
        """), "([(i, rng.randint(0, 100)) for i in range(n)],)"),
    Labelled("missing_letters", "O(1)", dedent("""\
        import string

        def f(seen):
            missing = []
            for c in string.ascii_lowercase:
                if c not in seen:
                    missing.append(c)
            return "".join(missing)
        """), "(set(chr(97 + rng.randrange(400)) for _ in range(n)) | set(str(i) for i in range(n)),)"),
    Labelled("first_five_squares", "O(1)", dedent("""\
        from itertools import islice

        def f(xs):
            squares = (x * x for x in xs)
            first = list(islice(squares, 5))
            first.sort(reverse=True)
            return first
        """), "([rng.randint(0, 99) for _ in range(n)],)"),
    Labelled("on_the_grid", "O(1)", dedent("""\
        def f(n):
            ticks = range(0, 5 * n, 3)
            hits = 0
            for k in (n - 1, n, n + 1):
                if k in ticks:
                    hits += 1
            return hits, len(ticks), ticks[-1]
        """), "(n,)"),
    Labelled("xor_upto", "O(1)", dedent("""\
        def f(n):
            def prefix(k):
                return [k, 1, k + 1, 0][k % 4]

            low = n // 3
            if low == 0:
                return prefix(n)
            return prefix(n) ^ prefix(low - 1)
        """), "(n,)"),
    # ------------------------------------------------------------ O(log n)
    Labelled("binary_search_absent", "O(log n)", dedent("""\
        def f(xs, target):
            lo, hi = 0, len(xs) - 1
            while lo <= hi:
                mid = (lo + hi) // 2
                if xs[mid] == target:
                    return mid
                if xs[mid] < target:
                    lo = mid + 1
                else:
                    hi = mid - 1
            return -1
        """), "([2 * i for i in range(n)], 2 * rng.randrange(n) + 1)"),
    Labelled("count_in_range_bisect", "O(log n)", dedent("""\
        from bisect import bisect_left, bisect_right

        def f(times, start, end):
            if start > end:
                start, end = end, start
            left = bisect_left(times, start)
            right = bisect_right(times, end)
            return right - left
        """), "([3 * i for i in range(n)], rng.randrange(n), n + rng.randrange(n))"),
    Labelled("halvings", "O(log n)", dedent("""\
        def f(n):
            steps = 0
            while n > 1:
                if n % 2:
                    steps += 1
                n //= 2
                steps += 1
            return steps
        """), "(n,)"),
    Labelled("digit_root", "O(log n)", dedent("""\
        def f(number):
            total = 0
            weight = 1
            while number:
                number, digit = divmod(number, 10)
                total += digit * weight
                weight = 3 if weight == 1 else 1
            return (10 - total % 10) % 10
        """), "(n,)"),
    Labelled("power_mod_loop", "O(log n)", dedent("""\
        def f(base, exponent):
            mod = 1_000_000_007
            result = 1
            base %= mod
            while exponent > 0:
                if exponent & 1:
                    result = result * base % mod
                base = base * base % mod
                exponent >>= 1
            return result
        """), "(rng.randint(2, 9), n)"),
    Labelled("power_recursive", "O(log n)", dedent("""\
        def power(x, k, m):
            if k == 0:
                return 1
            half = power(x, k // 2, m)
            if k % 2 == 0:
                return half * half % m
            return half * half * x % m

        def f(n):
            return power(3, n, 998244353)
        """), "(n,)"),
    Labelled("euclid", "O(log n)", dedent("""\
        def f(a, b):
            while b:
                a, b = b, a % b
            return a
        """), "(n, int(n * 0.6180339887498949))"),
    Labelled("heap_push_pop_once", "O(log n)", dedent("""\
        import heapq

        def f(heap):
            heapq.heappush(heap, -1)
            urgent = heapq.heappop(heap)
            return urgent, heap[0]
        """), "([2 * i for i in range(n)],)"),
    Labelled("rotated_minimum", "O(log n)", dedent("""\
        def f(nums):
            left, right = 0, len(nums) - 1
            while left < right:
                mid = left + (right - left) // 2
                if nums[mid] > nums[right]:
                    left = mid + 1
                else:
                    right = mid
            return nums[left]
        """), "((lambda k: [(i + k) % n for i in range(n)])(rng.randrange(n)),)"),
    Labelled("to_base", "O(log n)", dedent("""\
        def f(value, base=3):
            if value == 0:
                return "0"
            digits = []
            while value > 0:
                digits.append("0123456789abcdef"[value % base])
                value //= base
            return "".join(reversed(digits))
        """), "(n,)"),
    Labelled("factorial_zeros", "O(log n)", dedent("""\
        def f(n):
            if n < 5:
                return 0
            return n // 5 + f(n // 5)
        """), "(n,)"),
    Labelled("fib_fast_doubling", "O(log n)", dedent("""\
        MOD = 10**9 + 7

        def f(n):
            def pair(k):
                if k == 0:
                    return 0, 1
                a, b = pair(k >> 1)
                c = a * (2 * b - a) % MOD
                d = (a * a + b * b) % MOD
                return (d, (c + d) % MOD) if k & 1 else (c, d)

            return pair(n)[0]
        """), "(n,)"),
    Labelled("fenwick_prefix", "O(log n)", dedent("""\
        def f(tree, index):
            total = 0
            i = index
            while i > 0:
                total += tree[i]
                i -= i & -i
            return total
        """), "([rng.randint(0, 9) for _ in range(n + 1)], (1 << (n.bit_length() - 1)) - 1)"),
    Labelled("int_sqrt_search", "O(log n)", dedent("""\
        def f(n):
            low, high = 0, n
            answer = 0
            while low <= high:
                guess = (low + high) // 2
                if guess * guess <= n:
                    answer = guess
                    low = guess + 1
                else:
                    high = guess - 1
            return answer
        """), "(n,)"),
    Labelled("walk_to_leaf", "O(log n)", dedent("""\
        def f(tree):
            i = 0
            path = tree[0]
            while 2 * i + 1 < len(tree):
                child = 2 * i + 1
                if child + 1 < len(tree) and tree[child + 1] > tree[child]:
                    child += 1
                i = child
                path += tree[i]
            return path
        """), "([rng.randint(0, 100) for _ in range(n)],)"),
    # ---------------------------------------------------------------- O(n)
    Labelled("pair_sum_two_pointers", "O(n)", dedent("""\
        def f(xs, target):
            i, j = 0, len(xs) - 1
            while i < j:
                s = xs[i] + xs[j]
                if s == target:
                    return i, j
                if s < target:
                    i += 1
                else:
                    j -= 1
            return None
        """), "([10 * i + 2 * rng.randint(0, 4) for i in range(n)], 10 * n + 1)"),
    Labelled("next_greater", "O(n)", dedent("""\
        def f(temps):
            answer = [0] * len(temps)
            stack = []
            for i, t in enumerate(temps):
                while stack and temps[stack[-1]] < t:
                    j = stack.pop()
                    answer[j] = i - j
                stack.append(i)
            return answer
        """), "([rng.randint(30, 100) for _ in range(n)],)"),
    Labelled("longest_unique_window", "O(n)", dedent("""\
        def f(s):
            seen = set()
            left = best = 0
            for right in range(len(s)):
                while s[right] in seen:
                    seen.remove(s[left])
                    left += 1
                seen.add(s[right])
                best = max(best, right - left + 1)
            return best
        """), "(''.join(rng.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(n)),)"),
    Labelled("subarrays_with_sum", "O(n)", dedent("""\
        from collections import defaultdict

        def f(nums, k):
            seen = defaultdict(int)
            seen[0] = 1
            running = count = 0
            for x in nums:
                running += x
                count += seen[running - k]
                seen[running] += 1
            return count
        """), "([rng.randint(-5, 5) for _ in range(n)], 3)"),
    Labelled("letter_histogram", "O(n)", dedent("""\
        from string import ascii_lowercase

        def f(text):
            counts = {}
            for letter in ascii_lowercase:
                counts[letter] = text.count(letter)
            top = max(counts, key=counts.get)
            return top, counts[top]
        """), "(''.join(rng.choice('etaoinshrdlu') for _ in range(n)),)"),
    Labelled("bfs_levels", "O(n)", dedent("""\
        from collections import deque

        def f(adj):
            dist = [-1] * len(adj)
            dist[0] = 0
            queue = deque([0])
            while queue:
                u = queue.popleft()
                for v in adj[u]:
                    if dist[v] < 0:
                        dist[v] = dist[u] + 1
                        queue.append(v)
            return max(dist)
        """), "([[(i + 1) % n, (7 * i + 3) % n, rng.randrange(n)] for i in range(n)],)"),
    Labelled("knockout_rounds", "O(n)", dedent("""\
        def f(players):
            rounds = 0
            while len(players) > 1:
                winners = []
                for i in range(0, len(players), 2):
                    winners.append(max(players[i:i + 2]))
                players = winners
                rounds += 1
            return players[0], rounds
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("sliced_binary_search", "O(n)", dedent("""\
        def f(items, wanted):
            if not items:
                return False
            mid = len(items) // 2
            if items[mid] == wanted:
                return True
            if items[mid] < wanted:
                return f(items[mid + 1:], wanted)
            return f(items[:mid], wanted)
        """), "([2 * i for i in range(n)], 2 * rng.randrange(n) + 1)"),
    Labelled("max_by_halves", "O(n)", dedent("""\
        def f(xs):
            def best(lo, hi):
                if hi - lo == 1:
                    return xs[lo]
                mid = (lo + hi) // 2
                a = best(lo, mid)
                b = best(mid, hi)
                return a if a > b else b

            return best(0, len(xs))
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("window_maximum", "O(n)", dedent("""\
        from collections import deque

        def f(nums):
            k = max(1, len(nums) // 4)
            window, out = deque(), []
            for i, x in enumerate(nums):
                while window and nums[window[-1]] <= x:
                    window.pop()
                window.append(i)
                if window[0] <= i - k:
                    window.popleft()
                if i >= k - 1:
                    out.append(nums[window[0]])
            return out
        """), "([rng.randint(0, 10**4) for _ in range(n)],)"),
    Labelled("five_smallest_heapify", "O(n)", dedent("""\
        import heapq

        def f(values):
            heap = [(abs(v), v) for v in values]
            heapq.heapify(heap)
            closest = []
            while heap and len(closest) < 5:
                closest.append(heapq.heappop(heap)[1])
            return closest
        """), "([rng.randint(-10**6, 10**6) for _ in range(n)],)"),
    Labelled("chunk_checksums", "O(n)", dedent("""\
        def f(data, width=8):
            sums = []
            for start in range(0, len(data), width):
                acc = 0
                for offset in range(start, min(start + width, len(data))):
                    acc = (acc * 31 + data[offset]) & 0xFFFF
                sums.append(acc)
            return sums
        """), "([rng.randrange(256) for _ in range(n)],)"),
    Labelled("single_number_bits", "O(n)", dedent("""\
        def f(nums):
            result = 0
            for bit in range(32):
                ones = sum((x >> bit) & 1 for x in nums)
                if ones % 3:
                    result |= 1 << bit
            return result
        """), "([rng.getrandbits(31) for _ in range(n)],)"),
    Labelled("run_length_encode", "O(n)", dedent("""\
        from itertools import groupby

        def f(text):
            parts = []
            for char, run in groupby(text):
                length = sum(1 for _ in run)
                parts.append(char if length == 1 else f"{length}{char}")
            return "".join(parts)
        """), "(''.join(rng.choice('ab') for _ in range(n)),)"),
    Labelled("decode_ways_cached", "O(n)", dedent("""\
        from functools import lru_cache

        def f(digits):
            @lru_cache(maxsize=None)
            def ways(k):
                if k == 0:
                    return 1
                total = ways(k - 1) if digits[k - 1] != "0" else 0
                if k > 1 and 10 <= int(digits[k - 2:k]) <= 26:
                    total += ways(k - 2)
                return total % 1000007

            return [ways(k) for k in range(len(digits) + 1)][-1]
        """), "(''.join(rng.choice('12') for _ in range(n)),)"),
    # ---------------------------------------------------------- O(n log n)
    Labelled("smallest_gap", "O(n log n)", dedent("""\
        def f(xs):
            ordered = sorted(xs)
            best = None
            for a, b in zip(ordered, ordered[1:]):
                if best is None or b - a < best:
                    best = b - a
            return best
        """), "([rng.randint(0, 10**9) for _ in range(n)],)"),
    Labelled("merge_sort", "O(n log n)", dedent("""\
        def f(xs):
            if len(xs) <= 1:
                return xs
            mid = len(xs) // 2
            left, right = f(xs[:mid]), f(xs[mid:])
            out = []
            i = j = 0
            while i < len(left) and j < len(right):
                if left[i] <= right[j]:
                    out.append(left[i])
                    i += 1
                else:
                    out.append(right[j])
                    j += 1
            return out + left[i:] + right[j:]
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("heap_drain", "O(n log n)", dedent("""\
        from heapq import heappush, heappop

        def f(jobs):
            heap = []
            for order, priority in enumerate(jobs):
                heappush(heap, (priority, order))
            done = []
            while heap:
                done.append(heappop(heap)[1])
            return done
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("rank_each_query", "O(n log n)", dedent("""\
        def rank(xs, q):
            lo, hi = 0, len(xs)
            while lo < hi:
                mid = (lo + hi) // 2
                if xs[mid] < q:
                    lo = mid + 1
                else:
                    hi = mid
            return lo

        def f(xs, queries):
            return [rank(xs, q) for q in queries]
        """), "(list(range(0, 3 * n, 3)), [rng.randrange(3 * n) for _ in range(n)])"),
    Labelled("lis_patience", "O(n log n)", dedent("""\
        import bisect

        def f(nums):
            tails = []
            for x in nums:
                at = bisect.bisect_left(tails, x)
                if at == len(tails):
                    tails.append(x)
                else:
                    tails[at] = x
            return len(tails)
        """), "([10 * i + rng.randint(0, 9) for i in range(n)],)"),
    Labelled("merge_intervals", "O(n log n)", dedent("""\
        def f(intervals):
            merged = []
            for start, end in sorted(intervals, key=lambda iv: iv[0]):
                if merged and start <= merged[-1][1]:
                    merged[-1][1] = max(merged[-1][1], end)
                else:
                    merged.append([start, end])
            return merged
        """), "([(s, s + rng.randint(1, 20)) for s in [rng.randint(0, 10 * n) for _ in range(n)]],)"),
    Labelled("kruskal_sparse", "O(n log n)", dedent("""\
        def f(count, edges):
            parent = list(range(count))

            def find(x):
                while parent[x] != x:
                    parent[x] = parent[parent[x]]
                    x = parent[x]
                return x

            weight = 0
            for w, a, b in sorted(edges):
                ra, rb = find(a), find(b)
                if ra != rb:
                    parent[ra] = rb
                    weight += w
            return weight
        """), "(n, [(rng.randint(1, 10**6), rng.randrange(n), rng.randrange(n)) for _ in range(3 * n)])"),
    Labelled("doubling_jumps", "O(n log n)", dedent("""\
        def f(xs):
            n = len(xs)
            score = 0
            for i in range(n):
                step = 1
                while step < n:
                    score += xs[(i + step) % n]
                    step *= 2
            return score
        """), "([rng.randint(0, 9) for _ in range(n)],)"),
    Labelled("divisor_sums", "O(n log n)", dedent("""\
        def f(n):
            sums = [0] * (n + 1)
            for d in range(1, n + 1):
                for multiple in range(d, n + 1, d):
                    sums[multiple] += d
            return sum(1 for k in range(1, n + 1) if sums[k] > 2 * k)
        """), "(n,)"),
    Labelled("dijkstra_sparse", "O(n log n)", dedent("""\
        import heapq

        def f(graph):
            dist = [float("inf")] * len(graph)
            dist[0] = 0
            heap = [(0, 0)]
            while heap:
                d, u = heapq.heappop(heap)
                if d > dist[u]:
                    continue
                for v, w in graph[u]:
                    nd = d + w
                    if nd < dist[v]:
                        dist[v] = nd
                        heapq.heappush(heap, (nd, v))
            return max(dist)
        """), "([[((i + 1) % n, n)] + [(rng.randrange(n), rng.randint(1, n)) for _ in range(3)] for i in range(n)],)"),
    Labelled("meeting_rooms", "O(n log n)", dedent("""\
        import heapq

        def f(meetings):
            ends = []
            most = 0
            for start, end in sorted(meetings):
                while ends and ends[0] <= start:
                    heapq.heappop(ends)
                heapq.heappush(ends, end)
                most = max(most, len(ends))
            return most
        """), "([(s, s + rng.randint(1, n)) for s in [rng.randint(0, 2 * n) for _ in range(n)]],)"),
    Labelled("inversions_fenwick", "O(n log n)", dedent("""\
        class Fenwick:
            def __init__(self, size):
                self.t = [0] * (size + 1)

            def add(self, i):
                while i < len(self.t):
                    self.t[i] += 1
                    i += i & -i

            def upto(self, i):
                s = 0
                while i:
                    s += self.t[i]
                    i &= i - 1
                return s

        def f(perm):
            tree = Fenwick(len(perm))
            total = 0
            for seen, p in enumerate(perm):
                total += seen - tree.upto(p)
                tree.add(p)
            return total
        """), "(rng.sample(range(1, n + 1), n),)"),
    Labelled("max_subarray_halves", "O(n log n)", dedent("""\
        def f(a):
            def solve(lo, hi):
                if lo + 1 == hi:
                    return a[lo]
                mid = (lo + hi) // 2
                s, left = 0, a[mid - 1]
                for i in range(mid - 1, lo - 1, -1):
                    s += a[i]
                    left = max(left, s)
                s, right = 0, a[mid]
                for i in range(mid, hi):
                    s += a[i]
                    right = max(right, s)
                return max(solve(lo, mid), solve(mid, hi), left + right)

            return solve(0, len(a))
        """), "([rng.randint(-50, 50) for _ in range(n)],)"),
    Labelled("huffman_cost", "O(n log n)", dedent("""\
        import heapq

        def f(freqs):
            heap = list(freqs)
            heapq.heapify(heap)
            cost = 0
            while len(heap) > 1:
                merged = heapq.heappop(heap) + heapq.heappop(heap)
                cost += merged
                heapq.heappush(heap, merged)
            return cost
        """), "([rng.randint(1, 1000) for _ in range(n)],)"),
    Labelled("sparse_table", "O(n log n)", dedent("""\
        def f(xs):
            table = [list(xs)]
            step = 1
            while 2 * step <= len(xs):
                prev = table[-1]
                table.append([min(prev[i], prev[i + step]) for i in range(len(prev) - step)])
                step *= 2
            return [level[0] for level in table]
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    # --------------------------------------------------------------- O(n²)
    Labelled("two_sum_nested", "O(n²)", dedent("""\
        def f(nums, target):
            for i in range(len(nums)):
                for j in range(i + 1, len(nums)):
                    if nums[i] + nums[j] == target:
                        return [i, j]
            return []
        """), "([2 * rng.randint(0, 500) for _ in range(n)], 501)"),
    Labelled("ordered_unique", "O(n²)", dedent("""\
        def f(items):
            kept = []
            for item in items:
                if item not in kept:
                    kept.append(item)
            return kept
        """), "(rng.sample(range(10 * n), n),)"),
    Labelled("most_common_by_count", "O(n²)", dedent("""\
        def f(votes):
            winner, best = None, 0
            for v in votes:
                c = votes.count(v)
                if c > best:
                    winner, best = v, c
            return winner
        """), "([rng.randint(0, 50) for _ in range(n)],)"),
    Labelled("running_averages", "O(n²)", dedent("""\
        def f(prices):
            averages = []
            for i in range(1, len(prices) + 1):
                averages.append(sum(prices[:i]) / i)
            return max(averages)
        """), "([rng.randint(1, 100) for _ in range(n)],)"),
    Labelled("serve_line", "O(n²)", dedent("""\
        def f(customers):
            line = list(customers)
            clock = waited = 0
            while line:
                need = line.pop(0)
                waited += clock
                clock += need
            return waited
        """), "([rng.randint(1, 9) for _ in range(n)],)"),
    Labelled("lcs_table", "O(n²)", dedent("""\
        def f(a, b):
            dp = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    if x == y:
                        dp[i + 1][j + 1] = dp[i][j] + 1
                    else:
                        dp[i + 1][j + 1] = max(dp[i][j + 1], dp[i + 1][j])
            return dp[-1][-1]
        """), "(''.join(rng.choice('acgt') for _ in range(n)), ''.join(rng.choice('acgt') for _ in range(n)))"),
    Labelled("bubble_with_flag", "O(n²)", dedent("""\
        def f(values):
            a = list(values)
            end = len(a) - 1
            swapped = True
            while swapped:
                swapped = False
                for i in range(end):
                    if a[i] > a[i + 1]:
                        a[i], a[i + 1] = a[i + 1], a[i]
                        swapped = True
                end -= 1
            return a
        """), "(sorted((rng.randint(0, 10**6) for _ in range(n)), reverse=True),)"),
    Labelled("palindromes_from_centers", "O(n²)", dedent("""\
        def f(s):
            def grow(i, j):
                found = 0
                while i >= 0 and j < len(s) and s[i] == s[j]:
                    found += 1
                    i -= 1
                    j += 1
                return found

            return sum(grow(c, c) + grow(c, c + 1) for c in range(len(s)))
        """), "('a' * n,)"),
    Labelled("palindromic_suffix", "O(n²)", dedent("""\
        def f(word):
            for i in range(len(word)):
                tail = word[i:]
                if tail == tail[::-1] and len(tail) > 1:
                    return tail
            return word[-1:]
        """), "(('abc' * n)[:n],)"),
    Labelled("knapsack_row", "O(n²)", dedent("""\
        def f(weights, values, capacity):
            best = [0] * (capacity + 1)
            for w, v in zip(weights, values):
                for c in range(capacity, w - 1, -1):
                    cand = best[c - w] + v
                    if cand > best[c]:
                        best[c] = cand
            return best[capacity]
        """), "([rng.randint(1, 3) for _ in range(n)], [rng.randint(1, 50) for _ in range(n)], n)"),
    Labelled("pick_largest_repeatedly", "O(n²)", dedent("""\
        def f(scores):
            remaining = scores[:]
            podium = []
            while remaining:
                top = max(remaining)
                podium.append(top)
                remaining.remove(top)
            return podium
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("largest_island", "O(n²)", dedent("""\
        def f(grid):
            n = len(grid)
            seen = [[False] * n for _ in range(n)]
            best = 0
            for r in range(n):
                for c in range(n):
                    if grid[r][c] == 0 or seen[r][c]:
                        continue
                    seen[r][c] = True
                    stack, size = [(r, c)], 0
                    while stack:
                        y, x = stack.pop()
                        size += 1
                        for ny, nx in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                            if 0 <= ny < n and 0 <= nx < n and grid[ny][nx] and not seen[ny][nx]:
                                seen[ny][nx] = True
                                stack.append((ny, nx))
                    best = max(best, size)
            return best
        """), "([[1 if rng.random() < 0.7 else 0 for _ in range(n)] for _ in range(n)],)"),
    Labelled("recursive_tail_copy", "O(n²)", dedent("""\
        import sys

        sys.setrecursionlimit(20000)

        def f(xs):
            if len(xs) <= 4:
                return max(xs)
            first = max(xs[0], xs[1], xs[2], xs[3])
            rest = f(xs[4:])
            return first if first > rest else rest
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("inversions_cross_halves", "O(n²)", dedent("""\
        def f(xs):
            if len(xs) < 2:
                return 0
            mid = len(xs) // 2
            left, right = xs[:mid], xs[mid:]
            cross = sum(1 for a in left for b in right if a > b)
            return f(left) + f(right) + cross
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("parse_long_number", "O(n²)", dedent("""\
        def f(text):
            value = 0
            for ch in text:
                value = value * 10 + (ord(ch) - 48)
            return value % 97
        """), "(''.join(rng.choice('123456789') for _ in range(n)),)"),
    # --------------------------------------------------------- O(n² log n)
    Labelled("row_medians", "O(n² log n)", dedent("""\
        def f(matrix):
            medians = []
            for row in matrix:
                ordered = sorted(row)
                medians.append(ordered[len(ordered) // 2])
            return max(medians)
        """), "([[rng.randint(0, 10**6) for _ in range(n)] for _ in range(n)],)"),
    Labelled("sorted_pair_sums", "O(n² log n)", dedent("""\
        def f(xs):
            sums = []
            for i, a in enumerate(xs):
                for b in xs[i + 1:]:
                    sums.append(a + b)
            sums.sort()
            return sums[len(sums) // 2]
        """), "([rng.randint(0, 10**7) for _ in range(n)],)"),
    Labelled("count_triangles_bisect", "O(n² log n)", dedent("""\
        from bisect import bisect_left

        def f(sides):
            sides = sorted(sides)
            count = 0
            for i in range(len(sides)):
                for j in range(i + 1, len(sides)):
                    k = bisect_left(sides, sides[i] + sides[j], j + 1)
                    count += k - j - 1
            return count
        """), "([rng.randint(1, 10**6) for _ in range(n)],)"),
    Labelled("matrix_through_heap", "O(n² log n)", dedent("""\
        import heapq

        def f(grid):
            heap = []
            for row in grid:
                for cell in row:
                    heapq.heappush(heap, cell)
            order = []
            while heap:
                order.append(heapq.heappop(heap))
            return order[:: len(grid)]
        """), "([[rng.randint(0, 10**6) for _ in range(n)] for _ in range(n)],)"),
    Labelled("suffix_kth", "O(n² log n)", dedent("""\
        def f(xs):
            total = 0
            for i in range(len(xs)):
                tail = sorted(xs[i:], key=lambda v: -v)
                total += tail[len(tail) // 3]
            return total
        """), "([rng.randint(0, 10**6) for _ in range(n)],)"),
    Labelled("three_sum_search", "O(n² log n)", dedent("""\
        def present(xs, lo, want):
            hi = len(xs) - 1
            while lo <= hi:
                mid = (lo + hi) >> 1
                if xs[mid] == want:
                    return True
                if xs[mid] < want:
                    lo = mid + 1
                else:
                    hi = mid - 1
            return False

        def f(xs, target):
            n = len(xs)
            for i in range(n):
                for j in range(i + 1, n):
                    if present(xs, j + 1, target - xs[i] - xs[j]):
                        return True
            return False
        """), "(sorted(rng.sample(range(0, 20 * n, 2), n)), 30 * n + 1)"),
    Labelled("kruskal_all_points", "O(n² log n)", dedent("""\
        class DSU:
            def __init__(self, n):
                self.up = list(range(n))
                self.size = [1] * n

            def find(self, x):
                while x != self.up[x]:
                    self.up[x] = self.up[self.up[x]]
                    x = self.up[x]
                return x

            def join(self, a, b):
                a, b = self.find(a), self.find(b)
                if a == b:
                    return False
                if self.size[a] < self.size[b]:
                    a, b = b, a
                self.up[b] = a
                self.size[a] += self.size[b]
                return True

        def f(pts):
            n = len(pts)
            edges = [(abs(pts[i][0] - pts[j][0]) + abs(pts[i][1] - pts[j][1]), i, j)
                     for i in range(n) for j in range(i)]
            edges.sort()
            dsu = DSU(n)
            return sum(w for w, i, j in edges if dsu.join(i, j))
        """), "([(rng.randint(0, 10**6), rng.randint(0, 10**6)) for _ in range(n)],)"),
    Labelled("prim_lazy_dense", "O(n² log n)", dedent("""\
        import heapq

        def f(cost):
            n = len(cost)
            used = [False] * n
            heap = [(0, 0)]
            total = 0
            while heap:
                c, u = heapq.heappop(heap)
                if used[u]:
                    continue
                used[u] = True
                total += c
                for v in range(n):
                    if not used[v]:
                        heapq.heappush(heap, (cost[u][v], v))
            return total
        """), "([[rng.randint(1, 10**6) for _ in range(n)] for _ in range(n)],)"),
    Labelled("coprime_pairs", "O(n² log n)", dedent("""\
        def gcd(a, b):
            if b == 0:
                return a
            return gcd(b, a % b)

        def f(n):
            count = 0
            for a in range(1, n + 1):
                for b in range(1, n + 1):
                    if gcd(a, b) == 1:
                        count += 1
            return count
        """), "(n,)"),
    Labelled("quadrant_totals", "O(n² log n)", dedent("""\
        def f(grid):
            def worst(r0, r1, c0, c1):
                total = 0
                for r in range(r0, r1):
                    for c in range(c0, c1):
                        total += grid[r][c]
                if r1 - r0 == 1 or c1 - c0 == 1:
                    return total
                rm, cm = (r0 + r1) // 2, (c0 + c1) // 2
                return max(total, worst(r0, rm, c0, cm), worst(r0, rm, cm, c1),
                           worst(rm, r1, c0, cm), worst(rm, r1, cm, c1))

            return worst(0, len(grid), 0, len(grid))
        """), "([[rng.randint(-9, 9) for _ in range(n)] for _ in range(n)],)"),
    Labelled("shifted_combs", "O(n² log n)", dedent("""\
        def f(n):
            best = 0
            for start in range(n):
                covered = 0
                for gap in range(1, n + 1):
                    for pos in range(start % gap, n, gap):
                        covered += pos & 1
                best = max(best, covered)
            return best
        """), "(n,)"),
    Labelled("median_distance_by_guess", "O(n² log n)", dedent("""\
        def f(xs, k):
            lo, hi = 0, max(xs) - min(xs)
            while lo < hi:
                mid = (lo + hi) // 2
                close = 0
                for i, a in enumerate(xs):
                    for b in xs[i + 1:]:
                        if abs(a - b) <= mid:
                            close += 1
                if close >= k:
                    hi = mid
                else:
                    lo = mid + 1
            return lo
        """), "(rng.sample(range(2 * n), n), n * n // 4)"),
    Labelled("inversions_every_start", "O(n² log n)", dedent("""\
        def f(perm):
            n = len(perm)
            worst = 0
            for start in range(n):
                tree = [0] * (n + 1)
                inv = 0
                for p in perm[start:]:
                    i = p
                    while i <= n:
                        tree[i] += 1
                        i += i & -i
                    i = n + 1 - p
                    while i > 0:
                        inv += tree[i]
                        i -= i & -i
                worst = max(worst, inv)
            return worst
        """), "(rng.sample(range(1, n + 1), n),)"),
    Labelled("big_factorial", "O(n² log n)", dedent("""\
        def f(n):
            product = 1
            for k in range(2, n + 1):
                product *= k
            return product % 1000003
        """), "(n,)"),
    Labelled("bit_table", "O(n² log n)", dedent("""\
        def f(n):
            ones = 0
            i = 0
            while i < n:
                for j in range(n):
                    k = n + (i ^ j)
                    while k:
                        ones += k & 1
                        k >>= 1
                i += 1
            return ones
        """), "(n,)"),
    # --------------------------------------------------------------- O(n³)
    Labelled("matrix_product", "O(n³)", dedent("""\
        def f(a, b):
            n = len(a)
            cols = list(zip(*b))
            return [[sum(x * y for x, y in zip(row, col)) for col in cols] for row in a]
        """), "([[rng.randint(0, 9) for _ in range(n)] for _ in range(n)], [[rng.randint(0, 9) for _ in range(n)] for _ in range(n)])"),
    Labelled("floyd_warshall", "O(n³)", dedent("""\
        def f(weights):
            n = len(weights)
            d = [row[:] for row in weights]
            for k in range(n):
                for i in range(n):
                    via = d[i][k]
                    for j in range(n):
                        if via + d[k][j] < d[i][j]:
                            d[i][j] = via + d[k][j]
            return max(max(row) for row in d)
        """), "([[0 if i == j else rng.randint(1, 100) for j in range(n)] for i in range(n)],)"),
    Labelled("common_substring_brute", "O(n³)", dedent("""\
        def f(a, b):
            best = 0
            for i in range(len(a)):
                for j in range(len(b)):
                    k = 0
                    while i + k < len(a) and j + k < len(b) and a[i + k] == b[j + k]:
                        k += 1
                    if k > best:
                        best = k
            return best
        """), "('x' * n, 'x' * n)"),
    Labelled("matrix_chain", "O(n³)", dedent("""\
        def f(dims):
            n = len(dims) - 1
            cost = [[0] * n for _ in range(n)]
            for length in range(2, n + 1):
                for i in range(n - length + 1):
                    j = i + length - 1
                    cost[i][j] = min(
                        cost[i][k] + cost[k + 1][j] + dims[i] * dims[k + 1] * dims[j + 1]
                        for k in range(i, j)
                    )
            return cost[0][n - 1]
        """), "([rng.randint(1, 40) for _ in range(n + 1)],)"),
    Labelled("best_slice_sum", "O(n³)", dedent("""\
        def f(xs):
            best = xs[0]
            for i in range(len(xs)):
                for j in range(i + 1, len(xs) + 1):
                    best = max(best, sum(xs[i:j]))
            return best
        """), "([rng.randint(-100, 100) for _ in range(n)],)"),
    Labelled("zero_triples_combinations", "O(n³)", dedent("""\
        from itertools import combinations

        def f(nums):
            hits = 0
            for a, b, c in combinations(nums, 3):
                if a + b + c == 0:
                    hits += 1
            return hits
        """), "([rng.randint(-50, 50) for _ in range(n)],)"),
    Labelled("pair_sum_in_list", "O(n³)", dedent("""\
        def f(xs):
            for a in xs:
                for b in xs:
                    if a + b in xs:
                        return a, b
            return None
        """), "([2 * rng.randint(0, 10**6) + 1 for _ in range(n)],)"),
    Labelled("determinant_mod", "O(n³)", dedent("""\
        P = 998244353

        def f(matrix):
            m = [row[:] for row in matrix]
            n, det = len(m), 1
            for c in range(n):
                pivot = next((r for r in range(c, n) if m[r][c] % P), None)
                if pivot is None:
                    return 0
                if pivot != c:
                    m[c], m[pivot] = m[pivot], m[c]
                    det = -det
                det = det * m[c][c] % P
                inv = pow(m[c][c], P - 2, P)
                for r in range(c + 1, n):
                    factor = m[r][c] * inv % P
                    for k in range(c, n):
                        m[r][k] = (m[r][k] - factor * m[c][k]) % P
            return det % P
        """), "([[rng.randint(1, 10**6) for _ in range(n)] for _ in range(n)],)"),
    Labelled("max_sum_rectangle", "O(n³)", dedent("""\
        def f(grid):
            n = len(grid)
            best = grid[0][0]
            for top in range(n):
                cols = [0] * n
                for bottom in range(top, n):
                    cur = 0
                    for c in range(n):
                        cols[c] += grid[bottom][c]
                        cur = max(cur, 0) + cols[c]
                        best = max(best, cur)
            return best
        """), "([[rng.randint(-20, 20) for _ in range(n)] for _ in range(n)],)"),
    Labelled("triangulate_polygon", "O(n³)", dedent("""\
        import sys
        from functools import lru_cache

        sys.setrecursionlimit(10000)

        def f(values):
            @lru_cache(maxsize=None)
            def best(i, j):
                if j - i < 2:
                    return 0
                low = None
                for k in range(i + 1, j):
                    c = best(i, k) + best(k, j) + values[i] * values[k] * values[j]
                    if low is None or c < low:
                        low = c
                return low

            return best(0, len(values) - 1)
        """), "([rng.randint(1, 100) for _ in range(n)],)"),
    Labelled("bellman_ford_dense", "O(n³)", dedent("""\
        def f(w):
            n = len(w)
            dist = [0] + [10**9] * (n - 1)
            for _ in range(n - 1):
                for u in range(n):
                    for v in range(n):
                        if dist[u] + w[u][v] < dist[v]:
                            dist[v] = dist[u] + w[u][v]
            return sum(dist)
        """), "([[rng.randint(1, 100) for _ in range(n)] for _ in range(n)],)"),
    Labelled("egg_drop", "O(n³)", dedent("""\
        def f(eggs, floors):
            prev = list(range(floors + 1))
            for _ in range(2, eggs + 1):
                cur = [0] * (floors + 1)
                for h in range(1, floors + 1):
                    low = h
                    for x in range(1, h + 1):
                        trial = 1 + max(prev[x - 1], cur[h - x])
                        low = min(low, trial)
                    cur[h] = low
                prev = cur
            return prev[floors]
        """), "(n, n)"),
    Labelled("palindromes_every_pair", "O(n³)", dedent("""\
        def is_pal(s, lo, hi):
            while lo < hi:
                if s[lo] != s[hi]:
                    return False
                lo += 1
                hi -= 1
            return True

        def f(s):
            return sum(is_pal(s, i, j) for i in range(len(s)) for j in range(i, len(s)))
        """), "('z' * n,)"),
    Labelled("block_product", "O(n³)", dedent("""\
        def f(a, b):
            n = len(a)
            c = [[0] * n for _ in range(n)]

            def go(i0, i1, j0, j1, k0, k1):
                big = max(i1 - i0, j1 - j0, k1 - k0)
                if big == 1:
                    c[i0][j0] += a[i0][k0] * b[k0][j0]
                elif big == i1 - i0:
                    m = (i0 + i1) // 2
                    go(i0, m, j0, j1, k0, k1)
                    go(m, i1, j0, j1, k0, k1)
                elif big == j1 - j0:
                    m = (j0 + j1) // 2
                    go(i0, i1, j0, m, k0, k1)
                    go(i0, i1, m, j1, k0, k1)
                else:
                    m = (k0 + k1) // 2
                    go(i0, i1, j0, j1, k0, m)
                    go(i0, i1, j0, j1, m, k1)

            go(0, n, 0, n, 0, n)
            return c
        """), "([[rng.randint(0, 9) for _ in range(n)] for _ in range(n)], [[rng.randint(0, 9) for _ in range(n)] for _ in range(n)])"),
    Labelled("all_source_bfs_matrix", "O(n³)", dedent("""\
        from collections import deque

        def distances(adj, source):
            dist = {source: 0}
            queue = deque([source])
            while queue:
                u = queue.popleft()
                for v, linked in enumerate(adj[u]):
                    if linked and v not in dist:
                        dist[v] = dist[u] + 1
                        queue.append(v)
            return dist

        def f(adj):
            return sum(sum(distances(adj, s).values()) for s in range(len(adj)))
        """), "([[1 if j == (i + 1) % n or rng.random() < 0.4 else 0 for j in range(n)] for i in range(n)],)"),
    # --------------------------------------------------------- exponential
    Labelled("naive_fibonacci", "exponential", dedent("""\
        def f(n):
            if n < 2:
                return n
            return f(n - 1) + f(n - 2)
        """), "(n,)"),
    Labelled("plus_minus_target", "exponential", dedent("""\
        def f(nums, target):
            if not nums:
                return 1 if target == 0 else 0
            head, rest = nums[0], nums[1:]
            return f(rest, target - head) + f(rest, target + head)
        """), "([rng.randint(1, 9) for _ in range(n)], 1)"),
    Labelled("shortest_tour_permutations", "exponential", dedent("""\
        from itertools import permutations

        def f(dist):
            best = float("inf")
            for order in permutations(range(1, len(dist))):
                at, length = 0, 0
                for city in order:
                    length += dist[at][city]
                    at = city
                best = min(best, length + dist[at][0])
            return best
        """), "([[rng.randint(1, 100) for _ in range(n)] for _ in range(n)],)"),
    Labelled("hanoi_moves", "exponential", dedent("""\
        def f(disks):
            pegs = {"A": list(range(disks, 0, -1)), "B": [], "C": []}
            moves = 0

            def shift(k, src, dst, tmp):
                nonlocal moves
                if k == 0:
                    return
                shift(k - 1, src, tmp, dst)
                pegs[dst].append(pegs[src].pop())
                moves += 1
                shift(k - 1, tmp, dst, src)

            shift(disks, "A", "C", "B")
            return moves, len(pegs["C"])
        """), "(n,)"),
    Labelled("subset_mask_closest", "exponential", dedent("""\
        def f(weights):
            n = len(weights)
            half = sum(weights) / 2
            best = half
            for mask in range(1 << n):
                load = sum(weights[i] for i in range(n) if mask >> i & 1)
                best = min(best, abs(half - load))
            return best
        """), "([rng.randint(1, 1000) for _ in range(n)],)"),
    Labelled("queens_count", "exponential", dedent("""\
        def f(n):
            cols, up, down = set(), set(), set()

            def place(row):
                if row == n:
                    return 1
                ways = 0
                for c in range(n):
                    if c in cols or row + c in up or row - c in down:
                        continue
                    cols.add(c)
                    up.add(row + c)
                    down.add(row - c)
                    ways += place(row + 1)
                    cols.discard(c)
                    up.discard(row + c)
                    down.discard(row - c)
                return ways

            return place(0)
        """), "(n,)"),
    Labelled("three_colourings", "exponential", dedent("""\
        from itertools import product

        def f(n, edges):
            good = 0
            for colours in product("RGB", repeat=n):
                if all(colours[a] != colours[b] for a, b in edges):
                    good += 1
            return good
        """), "(n, [(i, i + 1) for i in range(n - 1)] + [(0, n - 1)])"),
    Labelled("grow_power_set", "exponential", dedent("""\
        def f(items):
            subsets = [[]]
            for item in items:
                subsets += [s + [item] for s in subsets]
            return max(len(s) for s in subsets if sum(s) % 3 == 0)
        """), "([rng.randint(1, 100) for _ in range(n)],)"),
    Labelled("assign_jobs_cached", "exponential", dedent("""\
        from functools import lru_cache

        def f(cost):
            n = len(cost)

            @lru_cache(maxsize=None)
            def best(mask):
                worker = bin(mask).count("1")
                if worker == n:
                    return 0
                return min(cost[worker][j] + best(mask | 1 << j)
                           for j in range(n) if not mask & (1 << j))

            return best(0)
        """), "([[rng.randint(1, 100) for _ in range(n)] for _ in range(n)],)"),
    Labelled("knapsack_plain_recursion", "exponential", dedent("""\
        def f(weights, values, capacity):
            def go(i, room):
                if i == len(weights):
                    return 0
                skip = go(i + 1, room)
                if weights[i] > room:
                    return skip
                return max(skip, values[i] + go(i + 1, room - weights[i]))

            return go(0, capacity)
        """), "([rng.randint(1, 9) for _ in range(n)], [rng.randint(1, 50) for _ in range(n)], 9 * n)"),
    Labelled("balanced_brackets", "exponential", dedent("""\
        def f(n):
            out = []

            def build(prefix, opened, closed):
                if len(prefix) == 2 * n:
                    out.append(prefix)
                    return
                if opened < n:
                    build(prefix + "(", opened + 1, closed)
                if closed < opened:
                    build(prefix + ")", opened, closed + 1)

            build("", 0, 0)
            return len(out)
        """), "(n,)"),
    Labelled("lcs_plain_recursion", "exponential", dedent("""\
        def f(a, b):
            if not a or not b:
                return 0
            if a[-1] == b[-1]:
                return 1 + f(a[:-1], b[:-1])
            return max(f(a[:-1], b), f(a, b[:-1]))
        """), "('a' * n, 'b' * n)"),
    Labelled("palindrome_partitions", "exponential", dedent("""\
        def f(s):
            result = []
            path = []

            def walk(start):
                if start == len(s):
                    result.append(path[:])
                    return
                for end in range(start + 1, len(s) + 1):
                    piece = s[start:end]
                    if piece == piece[::-1]:
                        path.append(piece)
                        walk(end)
                        path.pop()

            walk(0)
            return len(result)
        """), "('a' * n,)"),
    Labelled("cut_rod_plain", "exponential", dedent("""\
        def f(prices, length):
            if length == 0:
                return 0
            return max(prices[k] + f(prices, length - k) for k in range(1, length + 1))
        """), "([0] + [rng.randint(1, 50) for _ in range(n)], n)"),
    Labelled("count_bit_patterns", "exponential", dedent("""\
        def f(width):
            limit = 2 ** width
            pattern = good = 0
            while pattern < limit:
                if pattern & (pattern >> 1) == 0:
                    good += 1
                pattern += 1
            return good
        """), "(n,)"),
]
