"""The only floor that imports Ray: blocks of pairs out to workers, replies into the journal."""
