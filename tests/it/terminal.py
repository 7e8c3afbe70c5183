"""Runs a program on a terminal of its own and types an answer at each prompt.

    terminal.py ANSWERS PROGRAM [ARGUMENT…]      ANSWERS: one a line

Prints all that the terminal has shown; exits as the program does.
"""

import os
import pty
import sys

PROMPT = "[y]es, [a]lways, [n]o, [d]etails?"
answers, program = sys.argv[1].split("\n"), sys.argv[2:]

child, terminal = pty.fork()
if child == 0:
    os.execv(program[0], program)
shown, prompts = "", 0
while True:
    try:
        new = os.read(terminal, 4096)
    except OSError:  # Linux says so when the other end is closed.
        break
    if not new:
        break
    shown += new.decode(errors="replace")
    while shown.count(PROMPT) > prompts:
        prompts += 1
        answer = answers.pop(0) if answers else "no more answers"
        os.write(terminal, answer.encode() + b"\n")
sys.stdout.write(shown.replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
