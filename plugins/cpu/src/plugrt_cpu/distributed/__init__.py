"""The devices of several processes: indices, the coordinator, and the exchange of data."""
