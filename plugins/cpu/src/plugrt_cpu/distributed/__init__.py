"""The devices of several processes: who is whom, the coordinator, and the exchange of data."""
