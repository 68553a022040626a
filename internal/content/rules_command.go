package content

import (
	"regexp"
	"strings"
)

// Rules on code and paths that do harm wherever they run. What a shell command really does is for
// the shell analysis to say; here the same text is also caught in a file, a message or a memory.
// Installers piped into a shell are in every second README, and "echo 'rm -rf /'" deletes nothing, so
// whatever the shell analysis can judge by itself stays medium.

const aShell = `(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:/(?:usr/)?(?:local/)?bin/)?(?:(?:ba|z|da|k|a|fi|c|tc)?sh|python[0-9.]*|perl|ruby|node|php)\b`

func commandRules() []rule {
	p := newPhrasebook()
	in := func(name, what string, keys []string, c confirm) rule {
		return rule{name: "command." + name, cat: Command, what: what, keys: keys, match: c}
	}
	return append(reverseShells(p),
		in("pipe-to-shell", "runs what it downloads", []string{"curl", "wget"},
			withByte('|', 400, word(fromKey(Medium, 400, `(?i:curl|wget)\b[^\n|;]*\|(?:\s*tee\s[^\n|]*\|)?\s*`+aShell)))),
		in("shell-of-download", "runs what it downloads", []string{"<(", "$(", "`curl", "`wget"}, shellOfDownload).cheap(),
		in("powershell-download", "runs what it downloads", []string{"invoke-expression", "iex", "iwr ", "irm ", "invoke-webrequest", "invoke-restmethod", "downloadstring"},
			p.phrase(Medium, `((iex|invoke expression) <9> (downloadstring|iwr|irm|invoke (webrequest|restmethod))|(iwr|irm|invoke (webrequest|restmethod)|downloadstring) <9> (iex|invoke expression))`)),
		in("powershell-encoded", "PowerShell code in disguise", []string{"powershell", "pwsh"},
			fromKey(High, 300, `(?is:(?:powershell|pwsh)(?:\.exe)?\s.*?\s-e(?:nc|ncodedcommand)?\s+[0-9A-Za-z+/=]{24,})`)),
		in("decode-to-shell", "runs what it decodes", []string{"base64", "xxd -r", "openssl enc"},
			withByte('|', 160, fromKey(High, 160, `(?i:base64|xxd|openssl)\s[^\n|;]*\|\s*(?:gunzip\s[^|]{0,20}\|\s*)?`+aShell))),
		in("wipe-root", "deletes everything", []string{"rm "}, word(fromKey(Medium, 160, `(?i:rm)\s+(?:-{1,2}[\w-]+\s+)*(?:-(?:[a-zA-Z]*[rR][a-zA-Z]*[fF]|[a-zA-Z]*[fF][a-zA-Z]*[rR])[a-zA-Z]*|-[rR]\s+-f|-f\s+-[rR]|--recursive\s+--force|--no-preserve-root)\s+(?:-{1,2}[\w-]+\s+)*["']?(?:/|~|\$HOME|\$\{HOME\}|/(?:etc|usr|bin|boot|var|home|lib|root|opt|Users|System))/?\*?["']?(?:[\s;&|)"'`+"`"+`]|\z)`))),
		in("fork-bomb", "multiplies until the machine stops", []string{":()", ":(){"}, fromKey(Medium, 60, `:\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:`)),
		in("wipe-disk", "overwrites a disk", []string{"of=/dev/", "mkfs", "> /dev/sd", ">/dev/sd", "> /dev/nvme", ">/dev/nvme"},
			around(Medium, 80, 60, `(?:\bdd\s[^\n]*?of=/dev/(?:sd|nvme|hd|vd|xvd|disk|mmcblk)\w*|\bmkfs(?:\.\w+)?\s+(?:-\S+\s+)*/dev/\w+|>\s?/dev/(?:sd[a-z]|nvme\d))`)),
		in("ssh-foothold", "adds a key that may sign in", []string{"authorized_keys"},
			around(High, 100, 0, `(?:>>?|\btee\s+(?:-a\s+)?)\s*["']?[\w~/${}.-]*\.ssh/authorized_keys\z`)),
		in("startup-file", "plants code that runs at start-up", []string{".bashrc", ".zshrc", ".profile", ".bash_profile", "/etc/cron", "crontab -", "/etc/rc.local", ".config/autostart"},
			around(Medium, 60, 2, `(?:>>|\btee\s+-a|\|\s*crontab)\s*["']?(?:[\w~/${}.-]*(?:\.bashrc|\.zshrc|\.profile|\.bash_profile|rc\.local|/etc/cron\S{0,20}|autostart)|-(?:\s|\z))`)),
		in("no-password-sudo", "gives root away", []string{"nopasswd:"}, around(Medium, 60, 10, `(?i)ALL\s*=\s*\([^)]{1,10}\)\s*NOPASSWD:\s*ALL`)),
		in("jndi", "makes a logger load code", []string{"jndi:", "${lower:j", "${::-j}", "${upper:j"}, around(High, 6, 40, `(?i)\$\{(?:jndi:(?:ldaps?|rmi|dns|iiop|corba|nis|http)|\$?\{?(?:lower|upper|::-)[:]?-?j)`)),
		in("sql-tautology", "makes a query match everything", []string{"' or ", "' or'", "'or ", "\" or "},
			fromKey(Medium, 60, `(?i:['"]\s*or\s+(?:['"]?\d['"]?\s*=\s*['"]?\d|['"][a-z]?['"]\s*=\s*['"][a-z]?))`)),
		in("sql-union", "reads another table through a query", []string{"union select", "union all select"},
			fromKey(Medium, 60, `(?i:union\s+(?:all\s+)?select\s+(?:null|\d+\s*,|@@|user\s*\(|version\s*\(|concat|group_concat|password|char\s*\())`)),
		in("sql-stacked", "ends a query and starts another", []string{"drop table", "xp_cmdshell"},
			around(Medium, 16, 60, `(?i)(?:['")]\s*;\s*drop\s+table\s[^\n]*?--|\bexec\w*\s+(?:master\.+)?xp_cmdshell)`)),
		in("web-shell", "runs what a request tells it", []string{"$_get", "$_post", "$_request", "$_cookie"},
			webShell).cheap(),
		in("git-runs", "makes git run a program", []string{"core.sshcommand", "core.fsmonitor", "core.hookspath", "core.pager", "ext::", "protocol.ext.allow"},
			fromKey(Medium, 80, `(?i:core\.(?:sshcommand|fsmonitor|hookspath|pager)\s*=\s*["']?\S|core\.(?:sshcommand|fsmonitor|hookspath)\s+["']?[^\s"'tf]|ext::(?:ba)?sh\b|protocol\.ext\.allow[= ]+["']?(?:always|user))`)),
		in("preload", "loads code into other programs", []string{"ld_preload=", "ld_audit=", "dyld_insert_libraries="}, anywhere(Medium)),
		in("set-uid", "makes a file run as its owner", []string{"chmod"}, word(fromKey(Medium, 60, `chmod\s+(?:-\w+\s+)*(?:[ug]{1,2}\+\w*s\w*|[246]7[0-7]{2})\s`))),
		in("cover-tracks", "removes traces", []string{"history -c", "histfile=/dev/null", "unset histfile", "shred -u /var/log", "rm -rf /var/log", "> /var/log/auth", "> /var/log/wtmp"}, anywhere(Medium)),
		in("miner", "mines currency", []string{"stratum+tcp://", "stratum+ssl://", "xmrig"}, anywhere(Medium)),
	)
}

func reverseShells(p *phrasebook) []rule {
	in := func(name string, keys []string, c confirm) rule {
		return rule{name: "command." + name, cat: Command, what: "gives a shell to another host", keys: keys, match: c}
	}
	return []rule{
		in("reverse-shell", []string{"/dev/tcp/", "/dev/udp/"},
			around(High, 80, 60, `(?:\b(?:ba|z|k)?sh\s+-i\b[^\n]*?|\bexec\s+\d*<>?\s*|0>&1[^\n]*?)>?&?\s*/dev/(?:tcp|udp)/[\w.${}-]+/[\d$]`)),
		in("dev-tcp", []string{"/dev/tcp/", "/dev/udp/"}, fromKey(Low, 80, `(?i:/dev/(?:tcp|udp)/)[\w.${}-]+/[\d$]`)),
		in("netcat-shell", []string{"nc ", "ncat ", "netcat ", "nc.exe"},
			word(fromKey(High, 160, `(?i:ncat|netcat|nc(?:\.exe|\.traditional)?)\s+(?:-?[\w.:,$-]+\s+){0,8}?(?:-[a-z]*[ec]|--exec|--sh-exec)\s+["']?\S{0,20}?(?:sh|bash|cmd(?:\.exe)?|powershell)\b`))),
		in("fifo-shell", []string{"mkfifo", "mknod"}, word(fromKey(High, 240, `(?s:(?:mkfifo|mknod)\s.+?\bsh\s+-i\b.*?\b(?:nc|ncat|netcat|openssl|telnet)\b)`))),
		in("socket-shell", []string{"dup2(", "pty.spawn("}, socketShell),
		in("socat-shell", []string{"socat "}, word(fromKey(High, 200, `(?i:socat\s[^\n]*?exec:['"]?[^\s'",]{0,20}(?:sh|bash|cmd))`))),
		in("perl-shell", []string{"use socket", "fsockopen(", "tcpsocket.", "net.socket"},
			p.phrase(High, `(use socket|fsockopen|tcpsocket|net socket) <9> <9> <6> (exec|system|spawn|proc open|shell exec|popen) <3> (sh|bash)`)),
	}
}

// withByte tries c only if the byte follows within size: cheaper than finding out by expression.
func withByte(b byte, size int, c confirm) confirm {
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		if strings.IndexByte(text[e:min(len(text), e+size)], b) < 0 {
			return 0, 0, 0
		}
		return c(t, s, e)
	}
}

// webShell finds system($_GET[…]) and its like.
func webShell(t *target, s, e int) (int, int, Severity) {
	text := t.text
	from := max(0, s-60)
	before := strings.ToLower(text[from:s])
	for {
		trimmed := strings.TrimRight(before, " \t@(")
		opened := strings.Contains(before[len(trimmed):], "(")
		if !opened {
			return 0, 0, 0
		}
		if inner, ok := strings.CutSuffix(trimmed, "base64_decode"); ok {
			before = inner
			continue
		}
		for _, f := range []string{"system", "exec", "passthru", "popen", "eval", "assert"} {
			if strings.HasSuffix(trimmed, f) {
				return from + len(trimmed) - len(f), e, High
			}
		}
		return 0, 0, 0
	}
}

var (
	downloadOpen = regexp.MustCompile("\\A(?:<\\(|\\$\\(|`)\\s*(?:sudo\\s+)?(?:curl|wget)\\b")
	runsIt       = regexp.MustCompile(`(?:\b(?:ba|z|da|k)?sh(?:\s+-[a-z]*c)?|\beval|\bsource|(?:\A|[\s;])\.|\bpython[0-9.]*\s+-c|\bperl\s+-e|\bnode\s+-e)\s+["']?\z`)
)

// shellOfDownload finds sh -c "$(curl …)" and bash <(curl …).
func shellOfDownload(t *target, s, e int) (int, int, Severity) {
	text := t.text
	loc := downloadOpen.FindStringIndex(text[s:min(len(text), s+24)])
	if loc == nil {
		return 0, 0, 0
	}
	from := max(0, s-24)
	before := runsIt.FindStringIndex(text[from:s])
	if before == nil {
		return 0, 0, 0
	}
	return from + before[0], s + loc[1], Medium
}

// socketShell finds a shell whose input and output are a socket, in any language that says dup2.
func socketShell(t *target, s, e int) (int, int, Severity) {
	text := t.text
	from, to := max(0, s-300), min(len(text), e+300)
	w := strings.ToLower(text[from:to])
	if strings.Contains(w, "socket") && strings.Contains(w, "connect") && (strings.Contains(w, "/bin/sh") || strings.Contains(w, "/bin/bash") || strings.Contains(w, "\"sh\"") || strings.Contains(w, "'sh'")) {
		return s, e, High
	}
	return 0, 0, 0
}

func pathRule(name, what string, keys []string, c confirm) rule {
	return rule{name: "path." + name, cat: Path, what: what, keys: keys, match: c}
}

func pathRules() []rule {
	in := func(name, what string, sev Severity, keys ...string) rule {
		return pathRule(name, what, keys, anywhere(sev))
	}
	return []rule{
		pathRule("traversal", "climbs out of its directory", []string{"../", `..\`}, traversal).cheap(),
		pathRule("encoded-traversal", "climbs out of its directory in disguise", []string{"%2e%2e", "..%2f", "..%5c", "%252e", "%c0%ae", "%c0%af", "%u002e", "....//"},
			around(Medium, 0, 60, `(?i)\A(?:(?:%2e|\.){2}(?:%2f|%5c|/|\\)(?:(?:%2e|\.){2}(?:%2f|%5c|/|\\))|(?:%252e|%c0%ae|%u002e|\.){2}|%c0%af|\.{4}//\.{4}//)`)),
		pathRule("ssh-key", "names a private SSH key", []string{".ssh/id_"}, fromKey(Medium, 40, `\.ssh/id_[a-z0-9_]+(?:[^\w.]|\.[^p]|\z)`)),
		in("shadow", "names the password hashes", Medium, "/etc/shadow", "/etc/gshadow", "system32/config/sam", `system32\config\sam`, "ntds.dit"),
		in("passwd", "names the user list", Low, "/etc/passwd", "/etc/sudoers"),
		in("cloud-credentials", "names a file of cloud credentials", Medium, ".aws/credentials", "application_default_credentials.json", ".azure/accesstokens.json", ".git-credentials", ".config/gh/hosts.yml"),
		in("credential-file", "names a file that often holds credentials", Low, ".netrc", ".docker/config.json", ".kube/config", ".gnupg/", ".pypirc", ".pgpass"),
		in("process-memory", "reads what other programs hold", Medium, "/proc/self/environ", "/proc/1/environ", "/proc/self/mem", "/proc/kcore", "/proc/self/root", "/proc/1/root"),
		in("docker-socket", "names the socket that rules the host", Low, "/var/run/docker.sock", "/run/containerd/containerd.sock"),
		in("browser-store", "names a browser's or wallet's secrets", Medium, "cookies.sqlite", "login data", "key4.db", "wallet.dat", "logins.json"),
		in("metadata", "names a cloud's metadata service", Medium, "169.254.169.254", "metadata.google.internal", "100.100.100.200", "[fd00:ec2::254]"),
		in("nul", "ends a name early", Medium, "%00"),
	}
}

var climbsTo = regexp.MustCompile(`\A(?i:etc[/\\](?:passwd|shadow|hosts|sudoers)|proc[/\\]self|root[/\\]|\.ssh|var[/\\]log|windows[/\\](?:win\.ini|system32)|boot\.ini|home[/\\][^/\\]+[/\\]\.|\.env\b|\.aws)`)

// traversal counts the steps of a chain. Three and more towards a system file are an attack, a long
// chain alone is only odd: sources do reach up five directories.
func traversal(t *target, s, e int) (int, int, Severity) {
	text := t.text
	if s >= 3 && text[s-3:s] == text[s:e] {
		return 0, 0, 0 // not the first step
	}
	i, steps := s, 0
	for i+3 <= len(text) && text[i] == '.' && text[i+1] == '.' && (text[i+2] == '/' || text[i+2] == '\\') && steps < 64 {
		i += 3
		steps++
	}
	if steps < 3 {
		return 0, 0, 0
	}
	if m := climbsTo.FindStringIndex(text[i:min(len(text), i+60)]); m != nil {
		return s, i + m[1], High
	}
	if steps >= 8 {
		return s, i, Medium
	}
	return 0, 0, 0
}
