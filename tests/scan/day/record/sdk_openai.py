import io

import openai

client = openai.OpenAI(max_retries=0, organization="org-AbCdEfGhIjKlMnOpQrStUvWx", project="proj_AbCdEfGhIjKlMnOpQrStUvWx")
ask = [{"role": "user", "content": "Hello"}]
client.chat.completions.create(model="gpt-4o", messages=ask)
list(client.chat.completions.create(model="gpt-4o", messages=ask, stream=True))
client.responses.create(model="gpt-4o", input="Hello")
client.embeddings.create(model="text-embedding-3-small", input=["a", "b"])
client.files.create(file=("a.jsonl", b'{"a": 1}\n'), purpose="batch")
sound = io.BytesIO(bytes(range(256)) * 4)
sound.name = "a.wav"
client.audio.transcriptions.create(model="whisper-1", file=sound)
client.models.list()
