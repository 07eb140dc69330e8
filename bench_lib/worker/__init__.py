"""Methods that run in a process of their own, with an interpreter and packages of their own.

A worker is a program that speaks this protocol on its standard input and output; `reference.py`
is a whole one, with the standard library alone, and can be copied to begin with. It is started by

    papermill notebooks/03_eval.ipynb OUT.ipynb -p method worker -y 'method_args: {command:
        [/opt/aura/bin/python, aura_worker.py], settings: {weights: aurateam/AURA}}'

The protocol, version 1:
One JSON object a line, UTF-8. The bench writes a request to standard input and waits for one reply
on standard output; a reply repeats the request's `id`. Standard output is for replies alone; print
everything else to standard error, whose first and last words are shown when something fails.

    {"id": 7, "op": "observe", "state": "trunk", ...}
    {"id": 7, ...}                                     the result, keys as below
    {"id": 7, "error": "why", "kind": "error"}         this request failed, the worker goes on
    {"id": 7, "error": "why", "kind": "refused"}       the model declines to answer

`state` names the memory that a request is about: `trunk`, or a branch made from it. Times are
seconds of the session. Every request but `hello`, `reset` and `load` comes after one of the latter.

    op             request                                        result
    hello          protocol, settings (the run's `settings`)      protocol, name, can, provenance
    reset          trajectory, seed                               -
    begin_session  session {id, index, wall_start_s, frame_size [height, width]}        -
    observe        session, frames, captions, audio               alerts, counters
    end_session    recorded_bytes                                 -
    note           note                                           -
    watch          key, note                                      text (the acknowledgement)
    unwatch        key                                            -
    branch         to (name of the new state)                     -
    drop           - (the branch `state` is no longer needed)     -
    respond        query, generation                              text, stop, ttft_s, counters
    state_bytes    -                                              bytes {kind: number}
    save           folder (exists, empty)                         -
    load           folder                                         -
    bye            -                                              -, then the worker ends

    frames     [{t_s, jpeg | png: base64 | file: path}]; a file is there until the worker ends
    captions   [{start_s, end_s, text}], each once, when it has ended
    audio      null, or {start_s, wav: base64 | file: path}, 16 kHz mono, 16 bit
    note       {session, t_s, text, wall_s}
    query      {text, system, session, cutoff_s, closed, contract, options [{id, text}], notes}
    generation {max_new_tokens, temperature, top_p, repetition_penalty, seed}
    alerts     [{key, text, observed_s, delivered_s}], those that are new since the last `observe`:
               both stamps lie after the end of the clip before and not after that of this one
    counters   {name: number}, work done for this request (frames_encoded, tokens_prefilled, ...)

`can` says what the worker is: `Capabilities` has the names and what holds for one that is left out.
`provenance` is free: weights and revision, package versions, sampling; reports show it. Answer
`hello` before weights are loaded, since it is also asked to learn what a worker can, and answer it
alike at each start: a worker that says something else is another one, and refused.

Every value is read with its type, range and size (`values.py`): numbers are finite, texts whole
characters, a reply has at most 16 MiB. What is wrong is an error of its request, never corrected.

What the bench does:
One process for each trunk; it ends with the trunk, and so does all that it started, wherever that
has gone (`tree.py`). A worker without `forks` is asked on the trunk itself, which is then built
anew for each question. One without `saves` is saved as what it was sent and loaded by sending it
again. A worker never learns a question before its time, the time of an event that it watches for,
nor how long a session is.

A reply with `error` fails that question alone. So does a worker that ends, hangs beyond the time
limit or writes something else to standard output while it is asked on a branch: its process is
ended and another one is sent all that the trunk had seen. Branches alive at that time are lost. A
process that fails before it has taken in all of that answers nothing, and after three such starts
in a row the trunk is given up. What fails on the trunk itself is told again to the next process;
`watch` alone may be declined and leaves the memory as it was.
"""
