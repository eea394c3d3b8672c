"""What workers that ask a language model share: the endpoint, the key, retries, the ledger and the price.

    config = MyConfig.from_dict(…)                       # MyConfig derives from settings.EndpointSettings
    key = load_key(config)
    endpoint = Endpoint(config, key, Slots(folder, "name", config.max_concurrency))
    greet(endpoint, config, key.is_set)                  # is it there, is the key good, does it serve the model?
    record = Record(config, place)
    reply = endpoint.complete(body, record, deadline)
    Ledger(path).append(record.row(…))

`endpoint` and `faults` need the package openai, which is the SDK's extra [llm]; nothing here is imported by the rest of
the SDK. Python 3.11 or newer.
"""
