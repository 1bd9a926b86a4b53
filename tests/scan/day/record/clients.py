"""The clients of an ordinary day: who they are, what their user holds, what they do.
Hosts of registries are examples: a client asks the one it is configured for.
"""

GITHUB = "ghp_{b62:30}{crc62}"
AUTHOR = "git config --global user.name Me; git config --global user.email me@example.com; git config --global init.defaultBranch main; "
WORK = "mkdir app; cd app; git init -q; echo one > a.txt; git add .; git commit -qm one; "
STORE = "git config --global credential.helper store; "
CURL = "curl -sS -o /dev/null "

CLIENTS = {
    "git": {
        "title": "git with a token in its credential store: clone, fetch, push; a push with another name",
        "values": {"TOKEN": GITHUB},
        "environment": {"GH_TOKEN": "«TOKEN»"},
        "files": {".git-credentials": "https://me:«TOKEN»@github.com"},
        "script": AUTHOR + STORE + "git clone -q https://github.com/me/app.git app; cd app; echo a > b; git add .; "
        "git commit -qm b; git push -q origin HEAD:main; git fetch -q; git ls-remote -q; "
        "git remote set-url origin https://x-access-token:$GH_TOKEN@github.com/me/private.git; "
        "git push -q origin HEAD:other; git pull -q --rebase origin main; git push -q --tags; "
        "git push -q https://$GH_TOKEN:x-oauth-basic@github.com/me/private.git HEAD:third; "
        "git push -q https://$GH_TOKEN@github.com/me/private.git HEAD:fourth; "
        'git -c http.extraheader="AUTHORIZATION: basic $(printf x-access-token:$GH_TOKEN | base64 -w0)" '
        "fetch -q https://github.com/me/private.git main; seq 3000 > long; git add .; git commit -qm long; "
        "git push -q origin HEAD:long",
    },
    "git-gitlab": {
        "title": "git at another forge, with its token by the name of oauth2, and one in a host's own credentials",
        "values": {"TOKEN": "glpat-{b64u:20}", "PASSWORD": "{b62:24}"},
        "environment": {"GITLAB_TOKEN": "«TOKEN»"},
        "files": {".git-credentials": "https://oauth2:«TOKEN»@gitlab.com\nhttps://me:«PASSWORD»@git.example.com"},
        "script": AUTHOR + STORE + "for host in gitlab.com git.example.com; do git clone -q https://$host/me/private.git; "
        "cd private; echo $host > b; git add .; git commit -qm b; git push -q origin HEAD:$RANDOM; git fetch -q; cd ..; rm -rf private; done; "
        + CURL + '-H "PRIVATE-TOKEN: $GITLAB_TOKEN" https://gitlab.com/api/v4/projects; '
        + CURL + '-H "Authorization: Bearer $GITLAB_TOKEN" -d title=a https://gitlab.com/api/v4/projects/1/issues',
    },
    "git-lfs": {
        "title": "git with LFS: an object asked for, and put to a store",
        "values": {"TOKEN": GITHUB},
        "environment": {},
        "files": {".git-credentials": "https://me:«TOKEN»@github.com"},
        "script": AUTHOR + STORE + "git lfs install >/dev/null; " + WORK + "git lfs track '*.bin' >/dev/null; "
        "head -c 3000 /dev/urandom > a.bin; git add .; git commit -qm bin; "
        "git remote add origin https://github.com/me/app.git; git push -q origin HEAD:lfs",
    },
    "npm": {
        "title": "npm with a token in .npmrc: install, whoami, publish, login, audit",
        "values": {"TOKEN": "npm_{b62:30}{crc62}", "PASSWORD": "{b62:18}"},
        "environment": {"NPM_TOKEN": "«TOKEN»"},
        "files": {".npmrc": "registry=https://npm.example/\n//npm.example/:_authToken=«TOKEN»"},
        "script": "mkdir app; cd app; echo '{\"name\":\"my-app\",\"version\":\"1.0.0\"}' > package.json; echo '1' > index.js; "
        "npm install demo-pkg; npm whoami; npm publish; npm dist-tag add my-app@1.0.0 next; npm view demo-pkg; npm ping; "
        "npm audit; npm token list; npm deprecate demo-pkg@1.0.0 no; "
        "printf 'me\\n%s\\nme@example.com\\n' $PASSWORD | npm login --auth-type=legacy; npm logout",
        "hidden": {"PASSWORD": "«PASSWORD»"},
    },
    "npm-basic": {
        "title": "npm with a name and a password in .npmrc, in base 64",
        "values": {"PASSWORD": "{b62:22}"},
        "environment": {},
        "files": {".npmrc": "registry=https://npm.example/\n//npm.example/:username=me\n//npm.example/:_password=«b64 ‹PASSWORD›»\nemail=me@example.com"},
        "script": "mkdir app; cd app; echo '{\"name\":\"my-app\",\"version\":\"1.0.0\"}' > package.json; "
        "npm install demo-pkg; npm whoami; npm publish",
    },
    "pip": {
        "title": "pip with Basic credentials in the address of its index",
        "values": {"PASSWORD": "{b62:24}"},
        "environment": {},
        "files": {".config/pip/pip.conf": "[global]\nindex-url = https://me:«PASSWORD»@python.example/simple"},
        "script": "python3 -m venv v; unset PIP_CERT; export PIP_CERT=$SSL_CERT_FILE; v/bin/pip install demo-pkg; v/bin/pip download demo-pkg; v/bin/pip index versions demo-pkg",
    },
    "twine": {
        "title": "twine: an upload with a token in .pypirc",
        "values": {"TOKEN": "pypi-{macaroon}"},
        "environment": {},
        "files": {".pypirc": "[distutils]\nindex-servers = own\n[own]\nrepository = https://upload.python.example/legacy/\nusername = __token__\npassword = «TOKEN»"},
        "script": "python3 -c \"import sys; sys.path.insert(0, '$RECORD'); import packages; name, content = packages.wheel(); open(name, 'wb').write(content)\"; "
        "twine upload --disable-progress-bar -r own *.whl",
    },
    "cargo": {
        "title": "cargo with a token in credentials.toml: a sparse index, a download, publish, yank",
        "values": {"TOKEN": "cio{b62:32}"},
        "environment": {},
        "files": {
            ".cargo/config.toml": '[registries.own]\nindex = "sparse+https://crates.example/index/"\n[registry]\ndefault = "own"\nglobal-credential-providers = ["cargo:token"]',
            ".cargo/credentials.toml": '[registries.own]\ntoken = "«TOKEN»"',
        },
        "script": AUTHOR + "export CARGO_HOME=$HOME/.cargo; cargo init -q --lib --name my-crate app; cd app; "
        "printf 'description = \"d\"\\nlicense = \"MIT\"\\n' > x; sed -i '/^edition/r x' Cargo.toml; "
        "cargo add -q demo-crate --registry own; cargo fetch -q; cargo publish -q --no-verify --allow-dirty --registry own; "
        "cargo yank --registry own my-crate@0.1.0; cargo owner --registry own --list; cargo search --registry own demo",
    },
    "images": {
        "title": "skopeo with auth.json: an image to a registry with tokens, and to one with Basic credentials",
        "values": {"TOKEN": GITHUB, "PASSWORD": "{b62:24}", "BEARER": "djE6{b62:72}"},
        "environment": {},
        "files": {".docker/config.json": '{"auths": {"ghcr.io": {"auth": "«b64 me:‹TOKEN›»"}, "images.example": {"auth": "«b64 me:‹PASSWORD›»"}}}'},
        "script": "python3 $RECORD/image.py image; for to in ghcr.io images.example; do "
        "skopeo --insecure-policy copy -q --authfile ~/.docker/config.json oci:image:latest docker://$to/me/app:v1; "
        "skopeo inspect --authfile ~/.docker/config.json docker://$to/me/app:v1; "
        "skopeo list-tags --authfile ~/.docker/config.json docker://$to/me/app; done; "
        "skopeo login --authfile other --username me --password $PASSWORD images.example",
        "hidden": {"PASSWORD": "«PASSWORD»"},
    },
    "gh": {
        "title": "gh with GH_TOKEN: REST, GraphQL, an issue, a release with a file, a gist, a secret",
        "values": {"TOKEN": "gho_{b62:30}{crc62}"},
        "environment": {"GH_TOKEN": "«TOKEN»"},
        "files": {".config/gh/hosts.yml": "github.com:\n    user: me\n    oauth_token: «TOKEN»\n    git_protocol: https"},
        "script": AUTHOR + WORK + "git remote add origin https://github.com/me/app.git; gh api user; gh auth status; "
        "gh issue list -R me/app; gh issue create -R me/app -t title -b 'a body'; gh pr list -R me/app; "
        "gh release create v1 -R me/app -t one -n notes a.txt; gh gist create a.txt; gh repo view me/app; "
        "gh secret set NAME -R me/app -b value; gh api graphql -f query='{viewer{login}}'; "
        "gh api repos/me/app/contents/a.txt -X PUT -f message=m -f content=$(base64 -w0 a.txt); gh run list -R me/app; gh search repos x",
    },
    "aws": {
        "title": "aws with keys in its file: objects, a long one in parts, who am I, a signed address, other services",
        "values": {"ID": "AKIA{akid}", "KEY": "{b64:40}"},
        "environment": {},
        "files": {".aws/credentials": "[default]\naws_access_key_id = «ID»\naws_secret_access_key = «KEY»", ".aws/config": "[default]\nregion = eu-west-1"},
        "script": "export AWS_CA_BUNDLE=$SSL_CERT_FILE AWS_EC2_METADATA_DISABLED=true; echo text > a; head -c 9000000 /dev/zero > big; "
        "aws s3 cp a s3://my-bucket/a; aws s3 cp big s3://my-bucket/big; aws s3 ls s3://my-bucket/; aws s3 cp s3://my-bucket/a b; "
        "aws sts get-caller-identity; curl -sS -T a \"$(aws s3 presign s3://my-bucket/a)\"; curl -sS \"$(aws s3 presign s3://my-bucket/a)\"; "
        "aws dynamodb put-item --table-name t --item '{\"id\":{\"S\":\"1\"}}'; aws logs put-log-events --log-group-name g --log-stream-name s --log-events timestamp=1,message=m; "
        "aws secretsmanager list-secrets; aws lambda list-functions; aws ecr get-authorization-token; aws sqs list-queues",
    },
    "aws-session": {
        "title": "aws with the keys of a session in the environment",
        "values": {"ID": "ASIA{akid}", "KEY": "{b64:40}", "SESSION": "IQoJb3JpZ2luX2VjE{b64:600}"},
        "environment": {"AWS_ACCESS_KEY_ID": "«ID»", "AWS_SECRET_ACCESS_KEY": "«KEY»", "AWS_SESSION_TOKEN": "«SESSION»", "AWS_DEFAULT_REGION": "eu-west-1"},
        "files": {},
        "script": "export AWS_CA_BUNDLE=$SSL_CERT_FILE AWS_EC2_METADATA_DISABLED=true; echo text > a; aws s3 cp a s3://my-bucket/a; aws sts get-caller-identity; "
        "curl -sS -T a \"$(aws s3 presign s3://my-bucket/a)\"; curl -sS \"$(aws s3 presign s3://my-bucket/a)\"; aws s3 ls s3://my-bucket/; aws sqs list-queues",
    },
    "google": {
        "title": "Google's libraries: a token made new, one for a service account, calls with what they get",
        "values": {"REFRESH": "1//0{b64u:100}", "CLIENT": "GOCSPX-{b64u:28}", "ACCESS": "ya29.{b64u:180}", "ID": "{digits:12}-{lower:32}.apps.googleusercontent.com"},
        "environment": {},
        "files": {".config/gcloud/application_default_credentials.json": '{"client_id": "«ID»", "client_secret": "«CLIENT»", "refresh_token": "«REFRESH»", "type": "authorized_user"}'},
        "script": "python3 $RECORD/sdk_google.py",
    },
    "curl": {
        "title": "curl and wget: uploads with Basic credentials, a netrc, a form, a key in a field",
        "values": {"PASSWORD": "{b62:24}", "OTHER": "{b62:20}", "KEY": "{hex:40}", "STRIPE": "sk_live_{b62:24}", "SLACK": "xoxb-{digits:12}-{digits:12}-{b62:24}"},
        "environment": {"UPLOAD_PASSWORD": "«PASSWORD»", "EXAMPLE_API_KEY": "«KEY»", "STRIPE_API_KEY": "«STRIPE»", "SLACK_BOT_TOKEN": "«SLACK»"},
        "files": {".netrc": "machine files.example.com login me password «PASSWORD»\nmachine api.example.com login me password «KEY»\nmachine dav.example.com login me password «OTHER»"},
        "script": "echo text > a; " + CURL + "-u me:$UPLOAD_PASSWORD -T a https://files.example.com/a; " + CURL + "-n -T a https://dav.example.com/a; "
        + CURL + "-n -F file=@a -F name=b https://files.example.com/upload; " + CURL + "-H \"X-Api-Key: $EXAMPLE_API_KEY\" -d '{\"a\":1}' https://api.example.com/v1/things; "
        + CURL + "-H \"Authorization: Bearer $EXAMPLE_API_KEY\" https://api.example.com/v1/things; "
        + CURL + "-u $STRIPE_API_KEY: -d amount=100 -d currency=eur https://api.stripe.com/v1/charges; "
        + CURL + "-H \"Authorization: Bearer $STRIPE_API_KEY\" https://api.stripe.com/v1/customers; "
        + CURL + "-H \"Authorization: Bearer $SLACK_BOT_TOKEN\" -H 'Content-Type: application/json' -d '{\"channel\":\"C1\",\"text\":\"hello\"}' https://slack.com/api/chat.postMessage; "
        "wget -q -O /dev/null --auth-no-challenge --user me --password $UPLOAD_PASSWORD https://files.example.com/b",
    },
    "sdk-anthropic": {
        "title": "Anthropic's libraries in Python and JavaScript: a message, a stream, tools, a count, a file",
        "values": {"KEY": "sk-ant-api03-{b64u:93}AA"},
        "environment": {"ANTHROPIC_API_KEY": "«KEY»"}, "files": {},
        "script": "python3 $RECORD/sdk_anthropic.py; node $RECORD/sdk_anthropic.mjs",
    },
    "sdk-openai": {
        "title": "OpenAI's libraries in Python and JavaScript: chat, responses, embeddings, a file, sound",
        "values": {"KEY": "sk-proj-{b64u:74}T3BlbkFJ{b64u:74}"},
        "environment": {"OPENAI_API_KEY": "«KEY»"}, "files": {},
        "script": "python3 $RECORD/sdk_openai.py; node $RECORD/sdk_openai.mjs",
    },
    "sdk-openai-old": {
        "title": "OpenAI's library in Python, and curl, with a key of the older form",
        "values": {"KEY": "sk-{b62:20}T3BlbkFJ{b62:20}"},
        "environment": {"OPENAI_API_KEY": "«KEY»"}, "files": {},
        "script": "python3 $RECORD/sdk_openai.py; " + CURL + "-H \"Authorization: Bearer $OPENAI_API_KEY\" https://api.openai.com/v1/models",
    },
    "claude": {
        "title": "an agent, claude: a question, and a tool of its own",
        "values": {"KEY": "sk-ant-api03-{b64u:93}AA"},
        "environment": {"ANTHROPIC_API_KEY": "«KEY»"}, "files": {},
        "script": AUTHOR + WORK + "timeout 60 claude -p 'What is in this folder?' --allowedTools Bash </dev/null",
    },
    "codex": {
        "title": "an agent, codex: a question",
        "values": {"KEY": "sk-proj-{b64u:74}T3BlbkFJ{b64u:74}"},
        "environment": {"OPENAI_API_KEY": "«KEY»", "CODEX_API_KEY": "«KEY»"}, "files": {},
        "script": AUTHOR + WORK + "timeout 60 codex exec --sandbox danger-full-access 'What is in this folder?' </dev/null",
    },
    "gemini": {
        "title": "an agent, gemini: a question",
        "values": {"KEY": "AIza{b64u:35}"},
        "environment": {"GEMINI_API_KEY": "«KEY»"}, "files": {},
        "script": AUTHOR + WORK + "timeout 60 gemini --skip-trust -p 'What is in this folder?' </dev/null",
    },
    "opencode": {
        "title": "an agent, opencode: a question",
        "values": {"KEY": "sk-ant-api03-{b64u:93}AA"},
        "environment": {"ANTHROPIC_API_KEY": "«KEY»"}, "files": {},
        "script": AUTHOR + WORK + "timeout 60 opencode run -m anthropic/claude-sonnet-4-5 'What is in this folder?' </dev/null",
    },
    "aider": {
        "title": "an agent, aider: a question",
        "values": {"KEY": "sk-proj-{b64u:74}T3BlbkFJ{b64u:74}"},
        "environment": {"OPENAI_API_KEY": "«KEY»"}, "files": {},
        "script": AUTHOR + WORK + "timeout 90 aider --model openai/gpt-4o --no-check-update --yes --message 'What is in this folder?' </dev/null",
    },
    "browser": {
        "title": "a browser: a form of a login, one with a file, JSON, with cookies",
        "values": {"PASSWORD": "{b62:16}", "SESSION": "{b64u:43}"},
        "environment": {}, "files": {},
        "script": "timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=$HOME/c --ignore-certificate-errors "
        "--virtual-time-budget=15000 --dump-dom https://www.example.com/login > /dev/null",
    },
    "npm-others": {
        "title": "pnpm and yarn with a token in .npmrc: install and publish",
        "values": {"TOKEN": "npm_{b62:30}{crc62}"},
        "environment": {},
        "files": {".npmrc": "registry=https://npm.example/\n//npm.example/:_authToken=«TOKEN»\n//npm.example/:always-auth=true"},
        "script": "mkdir app; cd app; echo '{\"name\":\"my-app\",\"version\":\"1.0.0\"}' > package.json; "
        "pnpm add demo-pkg; pnpm publish --no-git-checks; rm -rf node_modules; yarn add demo-pkg; yarn publish --new-version 1.0.1 --no-git-tag-version",
    },
    "uv": {
        "title": "uv: an index with Basic credentials in its address, an upload with a token",
        "values": {"PASSWORD": "{b62:24}", "TOKEN": "pypi-{macaroon}"},
        "environment": {"UV_INDEX_URL": "https://me:«PASSWORD»@python.example/simple", "UV_PUBLISH_TOKEN": "«TOKEN»"},
        "files": {".config/pip/pip.conf": "[global]\nindex-url = https://me:«PASSWORD»@python.example/simple",
                  ".pypirc": "[distutils]\nindex-servers = own\n[own]\nrepository = https://upload.python.example/legacy/\nusername = __token__\npassword = «TOKEN»"},
        "script": "python3 -c \"import sys; sys.path.insert(0, '$RECORD'); import packages; name, content = packages.wheel(); open(name, 'wb').write(content)\"; "
        "uv venv -q v; uv pip install -q --python v/bin/python demo-pkg; uv publish --publish-url https://upload.python.example/legacy/ *.whl",
    },
    "go": {
        "title": "go with a netrc: a module by way of a proxy of one's own",
        "values": {"PASSWORD": "{b62:24}"},
        "environment": {},
        "files": {".netrc": "machine goproxy.example login me password «PASSWORD»"},
        "script": "export GOPROXY=https://goproxy.example GOSUMDB=off GOFLAGS=-mod=mod GOTOOLCHAIN=local; mkdir app; cd app; go mod init example.com/app; "
        "go get example.com/demo@latest",
    },
    "docker": {
        "title": "docker's client without its daemon: a login, a manifest",
        "values": {"TOKEN": GITHUB, "PASSWORD": "{b62:24}", "BEARER": "djE6{b62:72}"},
        "environment": {"GITHUB_TOKEN": "«TOKEN»"},
        "files": {".docker/config.json": '{"auths": {"ghcr.io": {"auth": "«b64 me:‹TOKEN›»"}, "images.example": {"auth": "«b64 me:‹PASSWORD›»"}}}'},
        "script": "for to in ghcr.io images.example; do docker manifest inspect $to/me/app:v1; done; cp -r ~/.docker other; "
        "printf %s $GITHUB_TOKEN | docker --config other login -u me --password-stdin ghcr.io; printf %s $PASSWORD | docker --config other login -u me --password-stdin images.example",
        "hidden": {"PASSWORD": "«PASSWORD»"},
    },
    "libraries": {
        "title": "libraries of other services: GitHub, GitLab, Slack, Stripe, Sentry, Hugging Face",
        "values": {"GITHUB": GITHUB, "GITLAB": "glpat-{b64u:20}", "SLACK": "xoxb-{digits:12}-{digits:12}-{b62:24}",
                   "STRIPE": "sk_live_{b62:24}", "HUB": "hf_{alpha:34}", "SENTRY": "{hex:32}"},
        "environment": {"GITHUB_TOKEN": "«GITHUB»", "GITLAB_TOKEN": "«GITLAB»", "SLACK_BOT_TOKEN": "«SLACK»", "STRIPE_API_KEY": "«STRIPE»",
                        "HF_TOKEN": "«HUB»"},
        "files": {},
        # Anybody may know it.
        "hidden": {"SENTRY_DSN": "https://«SENTRY»@o1.ingest.sentry.io/2"},
        "script": "for one in github gitlab slack stripe sentry hub; do python3 $RECORD/sdk_others.py $one; done; node $RECORD/sdk_others.mjs",
    },
}
