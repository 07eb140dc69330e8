"""StreamMind, the agent of StreamArena's paper: workers around one memory of one stream.

`stream.Stream` holds the parts together; `methods/streammind.py` offers it as a `Method`.

    front          each user turn: answer, delegate, start or cancel a monitor
    monitor        one task per watched condition, every two seconds of video
    memory_writer  micro, macro and super events, entities and relations, every four seconds
    router         a delegated mission: rounds of recall and search, then the answer
    recall         six tools over the memory        search     text, image and crop search
    log            append-only, bitemporal          bank       what a log says at an instant
"""
