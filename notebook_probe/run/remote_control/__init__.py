"""Control of a run from another process: the requests of a click, over a socket or a mailbox.

::

    asking process                                    training process
    RemoteControls, nbp attach ─▶ line ─ letter ─▶ socket or mailbox ─▶ desk ─▶ request queue
                                       ◀─ answer ─                          ◀─ ticket

A letter is JSON of bounded size, parsed strictly into one of a closed set of requests; it is never
code. Imported without torch.
"""
