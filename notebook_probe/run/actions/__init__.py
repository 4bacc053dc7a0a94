"""What a user of a run may call, by who would: a loop, a reader, who steers, who keeps notes."""
