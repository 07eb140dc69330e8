"""A whole worker with the standard library alone. Copy it, and put a model where it says so.

It perceives nothing: its memory is a running digest of all that it was sent, its answer says that
digest. It speaks up for a watch when a caption holds the last word of the instruction. It imports
nothing of the bench and runs with any Python 3.8 or later: `python reference.py`.
"""

import copy
import hashlib
import json
import sys
import traceback
from pathlib import Path

CAN = {
    "proactive": True,
    "captions": True,
    "audio": True,
    "notes": True,
    "forks": True,
    "saves": True,
    "persistent": True,
    "causal": True,
    "input_class": "incremental",
}


class Refused(Exception):
    """Raise it to decline a question."""


class Memory:
    """What is kept of the stream. `copy.deepcopy` of it is a branch, so weights stay outside."""

    def __init__(self, seed):
        self.digest = hashlib.sha256(str(seed).encode()).hexdigest()
        self.frames = 0
        self.watches = {}

    def take(self, *what):
        text = json.dumps([self.digest, what], sort_keys=True)
        self.digest = hashlib.sha256(text.encode()).hexdigest()


class Worker:
    """One method for each op; what it returns is the reply."""

    def __init__(self):
        self.states = {}

    def hello(self, request):
        can = dict(CAN, **request["settings"].get("can", {}))
        provenance = {"weights": "none", "python": sys.version.split()[0]}
        return {"protocol": 1, "name": "reference", "can": can, "provenance": provenance}

    def reset(self, request):
        # Load the model here, once.
        self.states = {"trunk": Memory(request["seed"])}

    def begin_session(self, request):
        self.of(request).take(request["session"]["index"], request["session"]["wall_start_s"])

    def observe(self, request):
        memory = self.of(request)
        for frame in request["frames"]:
            # A model would encode the picture here.
            memory.frames += 1
            memory.take(frame["t_s"], self.media(frame, "jpeg", "png"))
        if request["audio"]:
            memory.take(self.media(request["audio"], "wav"))
        alerts = []
        for caption in request["captions"]:
            memory.take(caption["text"])
            for key, text in memory.watches.items():
                if text.strip(" .!?").split(" ")[-1] in caption["text"]:
                    newest = [f["t_s"] for f in request["frames"]][-1:]
                    now = max([caption["end_s"], *newest])
                    said = {"key": key, "text": caption["text"]}
                    alerts.append(dict(said, observed_s=now, delivered_s=now))
        return {"alerts": alerts, "counters": {"frames_encoded": len(request["frames"])}}

    def end_session(self, request):
        self.of(request).watches.clear()

    def note(self, request):
        self.of(request).take(request["note"]["text"])

    def watch(self, request):
        self.of(request).watches[request["key"]] = request["note"]["text"]
        return {"text": "I am listening."}

    def unwatch(self, request):
        self.of(request).watches.pop(request["key"], None)

    def branch(self, request):
        self.states[request["to"]] = copy.deepcopy(self.of(request))

    def drop(self, request):
        del self.states[request["state"]]

    def respond(self, request):
        # A model would answer request["query"] here.
        memory = copy.deepcopy(self.of(request))
        memory.take(request["query"]["text"], request["query"]["notes"])
        return {"text": f"{memory.frames} frames, {memory.digest[:16]}", "stop": "end"}

    def state_bytes(self, request):
        return {"bytes": {"index": 40}}

    def save(self, request):
        path = Path(request["folder"]) / "memory.json"
        path.write_text(json.dumps(vars(self.of(request))))

    def load(self, request):
        memory = Memory(0)
        path = Path(request["folder"]) / "memory.json"
        vars(memory).update(json.loads(path.read_text()))
        self.states = {"trunk": memory}

    def bye(self, request):
        pass

    def of(self, request):
        return self.states[request["state"]]

    def media(self, item, *kinds):
        """The digest of a picture or sound, inside the message or in a file."""
        if "file" in item:
            data = Path(item["file"]).read_bytes()
        else:
            data = next(item[kind] for kind in kinds if kind in item).encode()
        return hashlib.sha256(data).hexdigest()


def main(worker):
    """Serve until `bye` or the end of input."""
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not be taken for a reply
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(worker, request["op"])(request) or {}
        except Refused as refusal:
            reply = {"error": str(refusal), "kind": "refused"}
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}", "kind": "error"}
        out.write(json.dumps(dict(reply, id=request["id"])) + "\n")
        out.flush()
        if request["op"] == "bye":
            break


if __name__ == "__main__":
    main(Worker())
