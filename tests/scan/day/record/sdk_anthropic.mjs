import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_TOOLS + "/");
const Anthropic = require("@anthropic-ai/sdk").default;
const client = new Anthropic({ maxRetries: 0 });
const ask = { model: "claude-sonnet-4-5", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] };
await client.messages.create(ask);
await client.messages.stream({ ...ask, system: "Be short." }).finalMessage();
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: Buffer.alloc(300, 7).toString("base64") } };
await client.messages.create({ ...ask, messages: [{ role: "user", content: [image, { type: "text", text: "What?" }] }] });
