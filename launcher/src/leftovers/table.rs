//! What runs by itself later, as data: which files, and who runs them when. Data only.
//!
//! What a person runs by name (a script of their own, `make`, tests) is not here, and
//! instructions that agents read (`AGENTS.md`, rules, commands) are not: nothing executes
//! them, and the next agent runs confined again.

use super::kinds::{Contents, Judge, LeftoverKind};

const fn plain(
    token: &'static str,
    (what, when): (&'static str, &'static str),
    judge: Judge,
    paths: &'static [&'static str],
) -> LeftoverKind {
    LeftoverKind {
        token,
        what,
        when,
        paths,
        judge,
        contents: Contents::Plain,
    }
}

const fn secret(kind: LeftoverKind) -> LeftoverKind {
    LeftoverKind {
        contents: Contents::Secret,
        ..kind
    }
}

/// Hooks of a repository.
pub(super) const GIT_HOOK: &str = "git-hook";
/// Settings of a repository.
pub(super) const GIT_CONFIG: &str = "git-config";
/// A link on the way to settings, or to where the command may not go.
pub(super) const LINK: &str = "link";
/// Files with attributes of paths.
pub(super) const GIT_ATTRIBUTES: &str = "git-attributes";
/// Programs that settings of a repository name.
pub(super) const GIT_PROGRAM: &str = "git-program";
/// Pointers to directories of git.
pub(super) const GIT_DIRECTORY: &str = "git-directory";
/// Names of linked work trees within a repository.
pub(super) const GIT_WORK_TREE: &str = "git-work-tree";
/// What Python starts with, and modules that it names.
pub(super) const PYTHON_START: &str = "python-start";
pub(super) const PYTHON_ENTRY: &str = "python-entry";
pub(super) const PYTHON_MODULE: &str = "python-module";
/// A program in a directory in which the user's shell looks for them.
pub(super) const PATH_PROGRAM: &str = "path-program";
/// A program with rights of others than who starts it.
pub(super) const SET_ID: &str = "set-id";

/// Beginnings of settings of VS Code that say how it looks and what text looks like: all
/// others may name what is executed, by whatever extension.
#[rustfmt::skip]
const EDITOR: &[&str] = &[
    "editor.", "files.", "search.", "explorer.", "window.", "breadcrumbs.", "outline.", "problems.",
    "diffeditor.", "zenmode.", "workbench.color", "workbench.editor.", "workbench.icontheme",
    "workbench.preferreddarkcolortheme", "workbench.preferredlightcolortheme",
    "workbench.startupeditor", "workbench.tree.", "cspell.words", "cspell.ignorewords",
    "cspell.language", "emmet.includelanguages", "folders.",
    "extensions.recommendations", "extensions.unwantedrecommendations",
];

/// Members of agents' settings, in small letters, that start nothing, allow nothing and take no
/// guard away: how it looks, what it remembers, which model. All below a name with a full stop
/// at its end; of all others the value alone. Agents gain settings by the week, so that a list of
/// those that execute would always be too short.
#[rustfmt::skip]
const AGENT_HARMLESS: &[&str] = &[
    "$schema", "$version", "version", "model", "small_model", "theme", "language", "verbose", "username",
    "includecoauthoredby", "cleanupperioddays", "alwaysthinkingenabled", "effortlevel", "fastmode",
    "outputstyle", "spinnertipsenabled", "autoupdates", "autoupdateschannel", "autoupdate", "share",
    "prefersreducedmotion", "terminalprogressbarenabled", "showturnduration", "companyannouncements.",
    "attribution.", "ui.", "tui.", "keybinds.", "privacy.", "telemetry.", "usagestatisticsenabled",
    "general.vimmode", "general.previewfeatures", "general.disableautoupdate", "general.checkpointing.",
    "model.", "context.filename", "contextfilename", "instructions.", "selectedauthtype",
    "security.auth.selectedtype", "ide.hasseennudge", "hasseenideintegrationnudge", "output.format",
    "hidetips", "hidebanner", "vimmode", "preferrededitor", "maxsessionturns", "layout",
    "banner", "render_markdown", "screen_reader", "beep", "staff", "last_logged_in_user.",
    "logged_in_users.", "firstlaunchat", "asked_setup_terminals.", "options.tui.", "options.debug",
    "amp.showcosts", "amp.notifications.enabled", "amp.terminal.theme",
];

/// The same of files that agents write as they go: only what starts programs.
const AGENT_STATE: &[&str] = &[
    "mcpserver",
    "mcp_server",
    "hooks",
    "notify",
    "apikeyhelper",
    "allowedtools",
    "bypass",
];

/// Keys of an agent's, a command's or a skill's front matter by which it may do nothing that
/// it might not without them.
const MATTER: &[&str] = &[
    "name",
    "title",
    "description",
    "argument-hint",
    "model",
    "color",
    "version",
    "license",
    "author",
    "category",
    "tags",
    "temperature",
    "mode",
    "tools",
    "disable-model-invocation",
    "user-invocable",
];

/// Items of jj's settings that name programs, or what words of the user's stand for.
pub(super) const JJ: &[&str] = &[
    ".aliases.",
    "editor",
    "pager",
    "tool",
    "program",
    "executable",
    "command",
    "fsmonitor",
    "watchman",
    "backend",
    "exec",
    "filter",
    "fix",
];

#[rustfmt::skip]
pub(super) const KINDS: &[LeftoverKind] = &[
    plain(GIT_HOOK, ("git hook", "git runs it"), Judge::Program,
        &["@git/hooks/*", ".githooks/*", ".git-hooks/*"]),
    secret(plain(GIT_CONFIG, ("settings of git that execute", "git runs them"), Judge::Git,
        &["@git/config", "@git/config.worktree", ".gitconfig", ".config/git/config"])),
    plain(GIT_DIRECTORY, ("pointer of a git repository", "git reads settings and hooks there"),
        Judge::Pointer, &[".git", "@git/commondir"]),
    plain(GIT_WORK_TREE, ("work tree of a git repository elsewhere", "runs there write this repository"),
        Judge::WorkTree, &["@git/gitdir"]),
    plain(GIT_ATTRIBUTES, ("attributes that hand files to a program", "git runs it"),
        Judge::Attributes, &[".gitattributes", "@git/info/attributes", ".config/git/attributes"]),
    plain("git-steps", ("steps of a rebase that execute", "git runs them when it goes on"),
        Judge::Steps, &["@git/rebase-merge/git-rebase-todo", "@git/sequencer/todo"]),
    plain(GIT_PROGRAM, ("program that settings of git name", "git runs it"), Judge::Whole, &[]),
    secret(plain("hg-settings", ("settings of Mercurial that execute", "hg runs them"),
        Judge::Sections(&["paths"]), &[".hg/hgrc", ".hg/hgrc-not-shared", ".hgrc", ".config/hg/hgrc"])),
    secret(plain("jj-settings", ("settings of jj that execute", "jj runs them"), Judge::Toml(JJ),
        &[".jj/repo/config.toml", ".jj/workspace-config.toml", ".jjconfig.toml", ".config/jj/config.toml",
          ".config/jj/conf.d/*", ".config/jj/repos/*/*"])),
    plain("hook-manager", ("git hooks of a hook manager", "git runs them"), Judge::Whole,
        &[".husky/*", ".husky/_/*", ".pre-commit-config.yaml", ".pre-commit-config.yml",
          "lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook.toml",
          ".lefthook.toml", "lefthook.json", ".lefthook.json", "lefthook-local.yml",
          ".lefthook-local.yml", ".lefthook/*/*", ".overcommit.yml", ".simple-git-hooks.json",
          ".simple-git-hooks.js", ".simple-git-hooks.cjs", "captainhook.json", "grumphp.yml"]),
    secret(plain("direnv", ("shell script of a directory", "the shell runs it on `cd`"),
        Judge::Whole, &[".envrc", ".autoenv", ".autoenv.zsh", ".direnvrc", ".config/direnv/direnvrc",
          ".config/direnv/lib/*", ".config/direnv/direnv.toml", "mise.toml", ".mise.toml", "mise.local.toml",
          ".mise.local.toml", ".config/mise/config.toml", ".mise/config.toml"])),
    plain("vscode-tasks", ("tasks that begin when the folder opens", "the editor runs them"),
        Judge::Says("folderopen"), &[".vscode/tasks.json"]),
    plain("vscode-launch", ("launch configurations", "the editor runs them when it debugs"),
        Judge::Whole, &[".vscode/launch.json"]),
    plain("vscode-settings", ("editor settings that execute", "the editor runs them"),
        Judge::Editor(EDITOR), &[".vscode/settings.json", "*.code-workspace",
          "Code/User/settings.json", "Cursor/User/settings.json", "VSCodium/User/settings.json"]),
    plain("editor-project", ("project settings of an editor", "the editor runs what they name"),
        Judge::Whole, &[".idea/runConfigurations/*", ".run/*.run.xml", ".idea/workspace.xml",
          ".idea/startup.xml", ".idea/watcherTasks.xml", ".idea/externalTools.xml",
          ".idea/tools/*", ".fleet/run.json", ".fleet/settings.json", ".zed/tasks.json",
          ".zed/settings.json", ".zed/debug.json", ".vimrc", ".gvimrc", ".nvimrc", ".exrc",
          ".nvim.lua", ".lvimrc", ".vim/vimrc", ".vim/*.vim", ".vim/plugin/*", ".vim/ftplugin/*",
          ".vim/autoload/*", ".vim/coc-settings.json", ".config/nvim/init.lua", ".config/nvim/init.vim",
          ".config/nvim/plugin/*", ".config/nvim/lua/*", ".dir-locals.el", ".dir-locals-2.el", ".emacs",
          ".emacs.d/init.el", ".emacs.d/early-init.el", ".config/emacs/init.el", ".helix/config.toml",
          ".helix/languages.toml", ".config/helix/languages.toml", ".nanorc"]),
    plain("devcontainer", ("development container", "the editor builds and starts it"),
        Judge::Whole, &["devcontainer.json", ".devcontainer.json", ".devcontainer/*",
          ".devcontainer/*/*", ".gitpod.yml", ".gitpod.Dockerfile", ".devfile.yaml"]),
    secret(plain("agent-settings", ("agent settings that execute", "the next agent runs them"),
        Judge::AllBut(AGENT_HARMLESS), &[".claude/settings*.json", ".gemini/settings.json",
          ".qwen/settings.json", ".cursor/cli.json", ".cursor/hooks.json", "opencode.json",
          "opencode.jsonc", ".opencode/opencode.json", ".config/opencode/opencode.json",
          ".copilot/config.json", ".crush.json", "crush.json", ".factory/settings.json",
          ".augment/settings.json", ".amp/settings.json", ".config/amp/settings.json"])),
    plain("agent-permissions", ("what agents may do without asking", "the next agent does it"),
        Judge::Whole, &[".continue/permissions.yaml", ".codex/rules/*", ".gemini/policies/*",
          ".gemini/trustedFolders.json", ".qwen/trustedFolders.json"]),
    plain("agent-allowance", ("command or skill that allows itself tools", "the next agent uses them unasked"),
        Judge::Matter(MATTER), &[".claude/commands/*", ".claude/commands/*/*", ".claude/commands/*/*/*",
          ".claude/commands/*/*/*/*", ".claude/skills/*/*", ".claude/skills/*/*/*"]),
    plain("agent-mode", ("agent with a mode of its own", "the next agent works in it"),
        Judge::Matter(MATTER), &[".claude/agents/*", ".claude/agents/*/*", ".opencode/agent/*", ".opencode/agents/*"]),
    secret(plain("agent-state", ("servers or hooks in an agent's state", "the next agent runs them"),
        Judge::Json(AGENT_STATE), &[".claude.json"])),
    secret(plain("codex-settings", ("servers or hooks of codex", "the next agent runs them"),
        Judge::Toml(&["mcp_servers", "notify", "hooks", "approval", "sandbox", "shell_environment",
          "model_providers", "base_url"]), &[".codex/config.toml"])),
    secret(plain("mcp", ("servers or programs of agents", "the next agent runs them"), Judge::Whole,
        &[".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".roo/mcp.json",
          ".kiro/settings/mcp.json", ".amazonq/mcp.json", ".junie/mcp/mcp.json",
          ".copilot/mcp-config.json", ".claude/hooks/*", ".codex/hooks.json", ".codex/hooks/*",
          ".gemini/hooks/*", ".cursor/hooks/*", ".kiro/hooks/*", ".github/hooks/*",
          ".opencode/plugin/*", ".opencode/plugins/*", ".opencode/tool/*", ".goosehints.yaml",
          ".config/goose/config.yaml", ".aider.conf.yml", ".continue/config.yaml", ".continue/mcpServers/*",
          ".opencode/tools/*", ".windsurf/hooks.json", ".windsurf/mcp_config.json", ".trae/mcp.json",
          ".kilocode/mcp.json", ".factory/mcp.json", ".factory/hooks.json", ".qoder/hooks.json",
          ".amazonq/cli-agents/*", ".kiro/agents/*", ".gemini/extensions/*/hooks/hooks.json",
          ".qwen/extensions/*/hooks/hooks.json", ".qwen/extensions/*/qwen-extension.json"])),
    secret(plain("agent-code", ("code or settings of an agent's own", "the agent or its editor runs it at its next start"),
        Judge::Whole, &[".cursor/argv.json", ".cursor/extensions/*", ".cursor/extensions/*/*",
          ".cursor/extensions/*/*/*", ".cursor/extensions/*/*/*/*", ".cursor/extensions/*/*/*/*/*", ".claude/local/*",
          ".claude/plugins/*/*", ".claude/plugins/*/*/*", ".claude/plugins/*/*/*/*",
          ".claude/plugins/*/*/*/*/*", ".claude/plugins/*/*/*/*/*/*", ".claude/plugins/*/*/*/*/*/*/*",
          ".claude/statusline*", ".claude-plugin/*", ".copilot/hooks/*", ".copilot/pkg/*/*",
          ".copilot/pkg/*/*/*", ".copilot/pkg/*/*/*/*", ".copilot/installed-plugins/*/*/*/*",
          ".codex/plugins/*/*", ".codex/plugins/*/*/*", ".codex/plugins/*/*/*/*", ".codex/plugins/*/*/*/*/*",
          ".codex/skills/*/scripts/*", ".copilot/installed-plugins/*/*", ".copilot/installed-plugins/*/*/*",
          ".config/opencode/plugin/*", ".config/opencode/plugins/*", ".config/opencode/tool/*",
          ".config/opencode/tools/*", ".config/opencode/config.json", ".local/share/opencode/bin/*",
          ".codex/bin/*", ".codex/managed_config.toml", ".gemini/*/bin/*", ".qwen/*/bin/*",
          ".gemini/.env", ".qwen/.env"])),
    plain("agent-plugins", ("where an agent's plugins come from", "the next agent runs their hooks"),
        Judge::Json(&["source", "installpath", "installlocation"]),
        &[".claude/plugins/installed_plugins.json", ".claude/plugins/known_marketplaces.json"]),
    secret(plain("cloud-settings", ("settings or a Python of gcloud", "the next gcloud goes or runs by them, with its log-in"),
        Judge::Whole, &["gcloud/configurations/*", "gcloud/properties", "gcloud/virtenv/enabled",
          "gcloud/virtenv/bin/*", "gcloud/virtenv/pyvenv.cfg"])),
    plain("package-scripts", ("scripts of a package", "its package manager runs them by itself"),
        Judge::Scripts, &["package.json"]),
    plain("package-document", ("document of a package", "its package manager may run its scripts"),
        Judge::Whole, &["package.json5", "package.yaml"]),
    secret(plain("package-settings", ("settings of a package manager", "it runs what they name"),
        Judge::Whole, &[".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins/*",
          ".yarn/plugins/*/*", ".yarn/releases/*", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml",
          ".bunfig.toml", "pip.conf", ".config/pip/pip.conf", ".pydistutils.cfg", ".cargo/config",
          ".cargo/config.toml", ".condarc", ".bundle/config", ".gemrc", ".mvn/extensions.xml",
          ".mvn/jvm.config", ".mvn/maven.config", ".m2/settings.xml", ".gradle/init.gradle",
          ".gradle/init.gradle.kts", ".gradle/init.d/*", ".gradle/gradle.properties",
          // Of all runs, as the preset `dev-tools` sets it.
          "cargo/config", "cargo/config.toml", "gradle/init.gradle", "gradle/init.gradle.kts",
          "gradle/init.d/*", "gradle/gradle.properties",
          ".bazelrc", ".config/go/env"])),
    secret(plain("toolchain", ("toolchain of a directory", "every compiler and editor started there runs it"),
        Judge::Toml(&["path", "overridecommand", "server"]), &["rust-toolchain.toml", "rust-toolchain",
          "rust-analyzer.toml", ".rust-analyzer.toml"])),
    plain("tool-settings", ("settings of a tool that execute", "the tool runs them when it starts there"),
        Judge::Whole, &[".ghci", ".iex.exs", ".ocamlinit", ".pdbrc", ".perldb", ".octaverc", ".ycm_extra_conf.py",
          ".luacheckrc", "hie.yaml", ".bazeliskrc", ".cursor/worktrees.json", ".cursor/environment.json",
          ".config/mise/conf.d/*", ".config/zed/settings.json", ".config/zed/tasks.json", ".bashrc.d/*",
          ".config/zsh/*", ".oh-my-zsh/custom/*", ".local/share/bash-completion/completions/*",
          ".gemini/extensions/*/gemini-extension.json", ".latexmkrc", "latexmkrc", ".theia/*", ".vs/tasks.vs.json",
          ".vs/launch.vs.json", ".externalToolBuilders/*", "*.sublime-project", ".rubocop.yml", ".pylintrc",
          "pylintrc", "startup.m"]),
    plain("build-script", ("build script", "editors and builds run it"), Judge::Appears,
        &["build.rs", "binding.gyp", "flake.nix", "shell.nix", "devenv.nix", "CMakePresets.json",
          "CMakeUserPresets.json", "eslint.config.js", "eslint.config.mjs", "eslint.config.cjs",
          "eslint.config.ts", "tools/bazel"]),
    plain(PYTHON_START, ("code that Python starts with", "every Python of its environment runs it"),
        Judge::Imports, &["site-packages/*.pth", "dist-packages/*.pth"]),
    plain(PYTHON_ENTRY, ("entry points that Python starts with", "every Python of its environment calls them"),
        Judge::Whole, &["site-packages/*.start", "dist-packages/*.start"]),
    plain(PYTHON_MODULE, ("module that Python starts with", "every Python of its environment runs it"),
        Judge::Whole, &["@module/*"]),
    plain("python-site", ("code that Python starts with", "every Python started there runs it"),
        Judge::Whole, &["sitecustomize.py", "usercustomize.py"]),
    plain("workflow", ("workflow of the forge", "it runs once it is pushed"), Judge::Whole,
        &[".github/workflows/*", ".github/actions/*/*", ".forgejo/workflows/*",
          ".gitea/workflows/*", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab/ci/*",
          ".circleci/config.yml", ".circleci/*", "azure-pipelines.yml", ".azure-pipelines/*",
          "bitbucket-pipelines.yml", ".travis.yml", ".drone.yml", ".woodpecker.yml",
          ".woodpecker.yaml", ".woodpecker/*", ".buildkite/*", "Jenkinsfile", ".appveyor.yml",
          "appveyor.yml", ".cirrus.yml", ".builds/*", ".build.yml"]),
    secret(plain("shell-start", ("start file of a shell or session", "the next one runs it"),
        Judge::Whole, &[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
          ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc",
          ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".xprofile", ".xsession",
          ".xsessionrc", ".xinitrc", ".xserverrc", ".pam_environment", ".tmux.conf", ".config/tmux/tmux.conf", ".screenrc", ".config/fish/config.fish", ".config/fish/conf.d/*",
          ".config/fish/functions/*", ".config/nushell/*.nu", ".config/environment.d/*", ".config/plasma-workspace/env/*",
          ".config/powershell/*.ps1", ".pythonrc", ".pythonstartup", ".ipython/profile_default/startup/*",
          ".irbrc", ".pryrc", ".Rprofile", ".Renviron", ".gdbinit", ".lldbinit", ".psqlrc",
          ".sqliterc", ".wgetrc", ".curlrc", "etc/profile.d/*", "etc/profile", "etc/bash.bashrc"])),
    plain("service", ("service, schedule or launcher of the session", "the system runs it"),
        Judge::Whole, &[".config/systemd/user/*", ".config/systemd/user/*/*", "etc/systemd/system/*", ".config/autostart/*",
          ".local/share/applications/*", ".local/share/dbus-1/services/*", "spool/cron/*", "cron/crontabs/*",
          "etc/cron.d/*", "etc/cron.daily/*", "etc/cron.hourly/*", "etc/crontab", "etc/ld.so.preload",
          "Library/LaunchAgents/*", ".config/hypr/hyprland.conf", ".config/sway/config", ".config/i3/config"]),
    secret(plain("login", ("keys or settings of a login", "who connects, or what ssh runs"),
        Judge::Whole, &[".ssh/rc", ".ssh/authorized_keys", ".ssh/authorized_keys2", ".ssh/config",
          ".ssh/config.d/*", ".ssh/environment", ".gnupg/gpg.conf", ".gnupg/gpg-agent.conf",
          ".docker/config.json", ".kube/config", ".aws/config", ".rhosts", ".shosts"])),
    plain(PATH_PROGRAM, ("program where the shell looks for programs", "it runs by its name"),
        Judge::Whole, &[]),
    plain("outgate-policy", ("policy or lock of outgate", "later runs go by it"), Judge::Whole,
        &["outgate.lock", ".outgate.toml", "outgate.toml"]),
    plain("package-pointers", ("packages or a Python that lie in the caches of runs", "who runs the project runs what later runs write there"),
        Judge::Mentions("/.cache/outgate/"), &[".pnp.cjs", ".pnp.js", ".pnp.data.json", "pyvenv.cfg"]),
    plain(SET_ID, ("program with the rights of others than who starts it", "who starts it has them"),
        Judge::Whole, &[]),
    plain(LINK, ("link that leads where the command may not, or where other runs write", "who writes there writes elsewhere, and who runs it runs what lies there"),
        Judge::Whole, &[]),
];
