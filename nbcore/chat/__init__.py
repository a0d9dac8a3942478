"""Messages to text and back: template, thinking, tool calls, loss masks, pre-flight checks. Paper sections 2 and 8."""
