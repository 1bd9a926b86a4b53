import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_TOOLS + "/");
const { Octokit } = await import(require.resolve("@octokit/rest").replace(/^/, "file://"));
const own = new Octokit({ auth: process.env.GITHUB_TOKEN });
await own.request("GET /user");
await own.request("POST /repos/{owner}/{repo}/issues", { owner: "me", repo: "app", title: "t", body: "b" });
