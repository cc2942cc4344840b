"""The packed store: shards, indexes, checksums, and the arrays of many utterances."""
