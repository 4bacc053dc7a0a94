"""Messages about a run to a chat, a mailbox or a phone, for people who are not looking.

A thread reads what the record and the status say, as any reader does: training never waits for it.
"""
