"""The board as a program of another language reads it: a fold of its lines in file order.

    fold.py show FILE            prints each task, and each claim that held, as JSON
    fold.py work FILE NAME       claims and ends tasks until none is left, prints the claims it won
"""

import json
import os
import sys

WAYS = {
    ("pending", "in_progress"), ("pending", "cancelled"), ("in_progress", "done"),
    ("in_progress", "failed"), ("in_progress", "pending"), ("in_progress", "cancelled"),
    ("in_progress", "in_progress"), ("failed", "pending"),
}


def first(line, *names):
    return next((line[name] for name in names if name in line), None)


class Board:
    def __init__(self, path):
        self.path, self.read, self.tasks, self.creates = path, 0, {}, 0
        self.events, self.claims, self.held = set(), [], set()

    def read_on(self):
        """Folds the whole lines that have come."""
        with open(self.path, "rb") as file:
            file.seek(self.read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self.read += len(whole)
        for text in whole.splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                self.take(line)

    def take(self, line):
        event = line.get("event")
        if event is not None:
            if event in self.events:
                return
            self.events.add(event)
        title = first(line, "title", "subject")
        op = line.get("op", "update" if title is None else "create")
        if op == "create" and title is not None:
            self.create(line, title)
        elif op == "update" and self.update(line) and event is not None:
            self.held.add(event)

    def create(self, line, title):
        self.creates += 1
        name = str(line.get("id", self.creates))
        needed = first(line, "depends_on", "blockedBy", "blocked_by", "dependsOn") or []
        needed = {str(it) for it in needed}
        if name in self.tasks or not needed <= self.tasks.keys():
            return
        self.tasks[name] = {
            "id": name, "title": title, "status": "pending", "owner": None, "attempt": 0,
            "depends_on": sorted(needed), "added_by": line.get("by", "user"),
            "assignee": first(line, "assignee", "owner"), "result": None, "released": {},
        }

    def waits_for(self, task):
        return [it for it in task["depends_on"] if self.tasks[it]["status"] != "done"]

    def update(self, line):
        task = self.tasks.get(str(line.get("id")))
        if task is None or line.get("expected_status") != task["status"]:
            return False
        old, new = task["status"], line.get("status", task["status"])
        by, attempt = line.get("by", "user"), line.get("attempt")
        if (old, new) not in WAYS:
            return False
        if (old, new) == ("pending", "in_progress"):
            if attempt not in (None, task["attempt"] + 1) or self.waits_for(task):
                return False
            task["attempt"] += 1
            task["owner"] = line.get("owner", by)
            self.claims.append([task["id"], task["attempt"], task["owner"]])
        elif old == "in_progress" and new != "cancelled":
            if attempt != task["attempt"] or (new != "pending" and by != task["owner"]):
                return False
        reason, result = line.get("reason"), line.get("result", "")
        if new == "failed" and not result:
            result = line.get("reason", "")
        if (old, new) == ("failed", "pending"):
            task["released"] = {}
        elif (old, new) == ("in_progress", "pending") and reason is not None:
            times = task["released"][reason] = task["released"].get(reason, 0) + 1
            if times >= 3:
                new, result = "failed", f"given back {times} times: {reason}"
        task["status"] = new
        if new != "in_progress":
            task["owner"] = None
        task["result"] = result if new in ("done", "failed") else None
        return True


def append(path, line):
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(file, json.dumps(line).encode() + b"\n")
    os.close(file)


def work(path, name):
    board, won, count = Board(path), [], 0
    while True:
        board.read_on()
        ready = [it for it in board.tasks.values() if it["status"] == "pending"]
        if not ready:
            return won
        # From the end, so that it meets the others somewhere in between.
        task, event = ready[-1], f"{name}-{count}"
        count += 1
        append(path, {
            "op": "update", "id": task["id"], "expected_status": "pending",
            "status": "in_progress", "owner": name, "by": name, "event": event,
        })
        board.read_on()
        if event not in board.held:
            continue
        won.append([task["id"], task["attempt"]])
        append(path, {
            "op": "update", "id": task["id"], "expected_status": "in_progress", "by": name,
            "status": "done", "attempt": task["attempt"], "result": f"by {name}",
        })


def main():
    verb, path = sys.argv[1:3]
    if verb == "work":
        return print(json.dumps(work(path, sys.argv[3])))
    board = Board(path)
    board.read_on()
    shown = ["id", "title", "status", "owner", "attempt", "depends_on", "added_by", "assignee",
             "result"]
    tasks = [{key: task[key] for key in shown} for task in board.tasks.values()]
    for task, whole in zip(tasks, board.tasks.values()):
        task["waits_for"] = board.waits_for(whole)
    print(json.dumps({"tasks": tasks, "claims": board.claims}))


main()
