"""The judge: asks for each verdict that is missing, keeps each accepted one for good.

A failed call is a verdict without a score and with its reason; the next run of the same command
asks for it again. A verdict belongs to what the judge was sent: where the reply, its annotations or
the rubric have changed since, it does not count and the case is judged anew.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

from tqdm.auto import tqdm

from bench_lib.content import digest
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.messages.chat import BudgetSpent, Chat, ChatError, ContractBroken, RequestRefused
from bench_lib.runs.folder import Run
from bench_lib.schema import KEY, Key, Verdict
from bench_lib.score.cases import Case
from bench_lib.score.verdicts import Judgement

GENERATION = Generation(max_new_tokens=2048, temperature=0.0)
"""Greedy, with room for a judge that thinks before it replies."""
GIVE_UP = 8
"""So many failures of one kind with none accepted: a wrong key or name, or a judge that cannot keep
the form of a verdict."""
LASTING: Mapping[type[ChatError], str] = {
    RequestRefused: "refuses every request",
    ContractBroken: "does not keep the form of a verdict",
}


@dataclass(frozen=True)
class Outcome:
    """What a judging pass did. `left` says why calls were not made, empty when all were."""

    judge: str
    wanted: int
    kept: int
    accepted: int
    failed: int
    left: str
    usage: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """Whether every case has its verdicts."""
        return self.kept + self.accepted == self.wanted

    def cost(self, price_in: float, price_out: float) -> float:
        """Money spent in this pass; prices are per million tokens."""
        used = self.usage.get("prompt_tokens", 0), self.usage.get("completion_tokens", 0)
        return (used[0] * price_in + used[1] * price_out) / 1e6


def judge_name(chat: Chat, generation: Generation = GENERATION) -> str:
    """The judge's id, with a mark for the settings and the decoding on which its replies depend.

    The token limit is not among them: a reply that was accepted under one limit stands.
    """
    decoding = asdict(replace(generation, max_new_tokens=0, keep_logits=False))
    plain = asdict(replace(GENERATION, max_new_tokens=0))
    if dict(chat.identity) == {"id": chat.id} and decoding == plain:
        return chat.id
    return f"{chat.id}#{digest([dict(chat.identity), decoding], 6)}"


def judge(
    run: Run,
    cases: Sequence[Case],
    chat: Chat,
    *,
    repeats: int = 1,
    workers: int = 8,
    generation: Generation = GENERATION,
    progress: bool = True,
) -> Outcome:
    """Ask `chat` for every missing verdict of the cases, `repeats` times each.

    Verdicts are appended to the run's `verdicts.*.jsonl` as they come. Repeats differ by their
    seed.

    Raises:
        BenchError: another process is judging this run, the server refuses everything, or the
            judge keeps to the form of a verdict nowhere.
    """
    name = judge_name(chat, generation)
    calls = [_Call(case, repeat, name) for case in cases for repeat in range(repeats)]
    with run.locked("judge", wait=False) as mine:
        if not mine:
            raise BenchError(
                f"another process is judging {run.folder.name}; wait for it or stop it"
            )
        have = {_identity(v) for v in stored(run) if v.score is not None}
        waiting = [call for call in calls if call.identity not in have]
        state = _Pass(run, chat, generation, len(waiting), progress)
        state.work(waiting, workers)
        run.sync()
    if state.hopeless and len(waiting) == len(calls):
        raise BenchError(f"the judge {chat.id} {state.hopeless}: {state.last_error}")
    return Outcome(
        judge=name,
        wanted=len(calls),
        kept=len(calls) - len(waiting),
        accepted=state.accepted,
        failed=state.failed,
        left=state.stopped,
        usage=dict(state.usage),
    )


def stored(run: Run) -> list[Verdict]:
    """All verdicts on disk, failed ones too.

    One that was made before verdicts named their trajectory gets that of the reply it is about;
    where replies of two trajectories have its name, it is about neither.
    """
    records = run.read("verdicts")
    if any("trajectory" not in record for record in records):
        owners: dict[tuple[str, str], list[str]] = {}
        for trajectory, candidate, probe in run.responses():
            owners.setdefault((candidate, probe), []).append(trajectory)
        for record in records:
            found = owners.get((record["candidate"], record["probe"]), [])
            record.setdefault("trajectory", found[0] if len(found) == 1 else "")
    return [Verdict.model_validate(record) for record in records if record["trajectory"]]


def current(verdicts: Iterable[Verdict], cases: Iterable[Case]) -> list[Verdict]:
    """The verdicts on these very cases: per case, judge and repeat the accepted one, else the last.

    A verdict on an earlier reply, reference or rubric is not among them.
    """
    wanted = {(case.key, case.digest) for case in cases}
    found: dict[_Identity, Verdict] = {}
    for verdict in verdicts:
        key = _identity(verdict)
        known = found.get(key)
        if (verdict.key, verdict.digest) not in wanted:
            continue
        if known is None or known.score is None:
            found[key] = verdict
    return list(found.values())


@dataclass(frozen=True)
class _Call:
    case: Case
    repeat: int
    judge: str

    @property
    def identity(self) -> _Identity:
        return self.case.key, self.judge, self.repeat, self.case.digest


_Identity = tuple[Key, str, int, str]


def _identity(verdict: Verdict) -> _Identity:
    return verdict.key, verdict.judge, verdict.repeat, verdict.digest


class _Pass:
    """One pass over the missing calls; `ask` runs in many threads."""

    def __init__(
        self, run: Run, chat: Chat, generation: Generation, count: int, progress: bool
    ) -> None:
        self.run, self.chat, self.generation = run, chat, generation
        self.bar = tqdm(total=count, desc="judge", disable=not progress)
        self.accepted = self.failed = 0
        self.lasting: Counter[type[ChatError]] = Counter()
        self.stopped = self.last_error = ""
        self.usage: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def hopeless(self) -> str:
        """What the judge does with every call, where that is known to last; empty elsewhere."""
        if self.accepted:
            return ""
        found = (words for kind, words in LASTING.items() if self.lasting[kind] >= GIVE_UP)
        return next(found, "")

    def work(self, calls: Sequence[_Call], workers: int) -> None:
        """Ask for all of them; an interrupt or a fault of ours ends what has not begun."""
        with self.bar, ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(self.ask, calls))
            except BaseException as error:
                self.stopped = f"{type(error).__name__}: {error}"
                raise

    def ask(self, call: _Call) -> None:
        """One verdict, on disk when this returns."""
        if self.stopped:
            return
        verdict, usage = self._verdict(call)
        if verdict is None:
            return
        self.run.append("verdicts", verdict)
        with self._lock:
            self.accepted += verdict.score is not None
            self.failed += verdict.score is None
            for name, count in usage.items():
                self.usage[name] = self.usage.get(name, 0) + count
            self.stopped = self.stopped or (self.hopeless and f"the judge {self.hopeless}")
            self.bar.update(1)

    def _verdict(self, call: _Call) -> tuple[Verdict | None, Mapping[str, int]]:
        case = call.case
        blank = Verdict(
            **dict(zip(KEY, case.key, strict=True)),
            judge=call.judge,
            repeat=call.repeat,
            digest=case.digest,
        )
        generation = replace(self.generation, seed=self.generation.seed + call.repeat)
        try:
            reply = self.chat.complete(case.messages, case.contract, generation)
        except BudgetSpent as error:
            self.stopped = str(error)
            return None, {}
        except ChatError as error:
            told = str(error)
            if isinstance(error, ContractBroken):
                told += f"; {_advice(self.chat)}"
            with self._lock:
                self.last_error = told
                self.lasting.update(kind for kind in LASTING if isinstance(error, kind))
            return blank.model_copy(update={"error": told, "rejected": error.rejected}), {}
        said, spent = reply.value, {} if reply.cached else reply.usage
        if not isinstance(said, Judgement):
            text = f"the judge gave no verdict (stop: {reply.stop})"
            return blank.model_copy(update={"error": text, "raw_text": reply.text}), spent
        return (
            blank.model_copy(
                update={
                    "score": said.score,
                    "checks": said.checks,
                    "issues": said.issues,
                    "justification": said.justification,
                    "raw_text": reply.text,
                    "rejected": reply.rejected,
                    "usage": dict(reply.usage),
                }
            ),
            spent,
        )


def _advice(chat: Chat) -> str:
    """What helps against a judge that does not keep the form of a verdict."""
    structured = chat.identity.get("structured")
    if structured in ("none", "json_object"):
        return "hold its server to the form: -y 'judge_args: {structured: json_schema}'"
    if structured is False:
        return "hold the engine to the form: -y 'judge_args: {structured: true}'"
    return "another judge may keep it"
