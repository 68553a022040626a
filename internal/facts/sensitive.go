package facts

import (
	"path"
	"strings"
)

// secretNames are names of files that hold credentials, wherever they are.
var secretNames = []string{
	".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx", "id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg",
	"credentials", "credentials.json", "credentials.toml", "secrets.json", "secrets.y*ml", "secrets.toml", "*.keystore", "*.jks", "*.tfvars",
}

// publicNames are exceptions: examples and public halves.
var publicNames = []string{".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"}

// secretDirs are directories under home that hold credentials.
var secretDirs = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/op", ".config/hub",
	".mozilla", ".config/google-chrome", ".config/chromium", ".password-store", ".local/share/keyrings",
}

// secretPaths are system files that hold credentials.
var secretPaths = []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/root/.ssh"}

// sensitive says whether a real path likely holds credentials.
func sensitive(real, home string) bool {
	name := path.Base(real)
	for _, n := range publicNames {
		if ok, _ := path.Match(n, name); ok {
			return false
		}
	}
	for _, n := range secretNames {
		if ok, _ := path.Match(n, name); ok {
			return true
		}
	}
	for _, d := range secretDirs {
		if home != "" && within(home+"/"+d, real) {
			return true
		}
	}
	for _, p := range secretPaths {
		if within(p, real) {
			return true
		}
	}
	return strings.HasPrefix(real, "/proc/") && (name == "environ" || name == "mem")
}

func within(dir, p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// picksSecrets says whether a pattern picks out files that hold credentials:
// it matches the name of one, and not just any name.
func picksSecrets(glob string) bool {
	name := path.Base(glob)
	if ok, err := path.Match(name, "main.go"); ok || err != nil {
		return false
	}
	for _, n := range []string{".env", ".env.local", "id_rsa", "id_ed25519", "credentials", "server.pem", "server.key", ".netrc", ".npmrc", ".pgpass"} {
		if ok, _ := path.Match(name, n); ok {
			return true
		}
	}
	return sensitive(name, "")
}
