"""Who answers a call: one file a provider, all behind the protocol in `judge`."""
