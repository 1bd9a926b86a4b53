import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_TOOLS + "/");
const OpenAI = require("openai").default;
const client = new OpenAI({ maxRetries: 0 });
const messages = [{ role: "user", content: "Hello" }];
await client.chat.completions.create({ model: "gpt-4o", messages });
for await (const _ of await client.chat.completions.create({ model: "gpt-4o", messages, stream: true }));
await client.responses.create({ model: "gpt-4o", input: "Hello" });
await client.files.create({ file: new File(["{}\n"], "a.jsonl"), purpose: "batch" });
