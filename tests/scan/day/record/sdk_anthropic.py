import anthropic

client = anthropic.Anthropic(max_retries=0)
ask = {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "Hello"}]}
client.messages.create(**ask)
tool = {"name": "look", "description": "Looks", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}
with client.messages.stream(**ask, tools=[tool], system="Be short.") as stream:
    stream.get_final_message()
client.messages.count_tokens(model=ask["model"], messages=ask["messages"])
client.beta.files.upload(file=("a.txt", b"text\n", "text/plain"))
client.models.list()
