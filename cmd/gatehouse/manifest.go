package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// exitWidened is the exit code of a manifest that goes beyond its baseline.
const exitWidened = codeError(1)

// baselineFile is where a project keeps the manifest that was reviewed.
const baselineFile = "permissions.json"

func newManifest(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "manifest", Short: "Generate and compare permission manifests: what every tool may touch, as a file to review",
		Example: `  gatehouse manifest generate tools.yaml > now.json
  gatehouse manifest verify --baseline permissions.json now.json
  gatehouse manifest accept now.json --baseline permissions.json
  gatehouse manifest generate --from-gate --credential-file me.key --out gate.json
  gatehouse manifest verify --from-gate --credential-file me.key --baseline gate.json`,
	})
	cmd.AddCommand(newManifestGenerate(a), newManifestInspect(), newManifestVerify(a), newManifestAccept(a))
	return cmd
}

// manifestSource is where a manifest comes from: a file, or the running gate.
type manifestSource struct {
	app      *app
	fromGate bool
}

// flag adds --from-gate, with which no file is named.
func (m *manifestSource) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.fromGate, "from-gate", false, "take that of the running gate: its tools, its MCP servers with their pinned definitions, its limits")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if m.fromGate {
			return cobra.NoArgs(cmd, args)
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
}

// name is what the source is called in messages.
func (m *manifestSource) name(args []string) string {
	if m.fromGate {
		return "the running gate"
	}
	return args[0]
}

// read reads the manifest, or makes it.
func (m *manifestSource) read(cmd *cobra.Command, args []string) (*manifest.Manifest, error) {
	if !m.fromGate {
		return readEither(args[0])
	}
	got := &manifest.Manifest{}
	if err := m.app.do(cmd, "GET", "/v1/manifest", nil, got); err != nil {
		return nil, err
	}
	text, err := got.JSON()
	if err != nil {
		return nil, err
	}
	return manifest.Parse(text) // what came over the wire has the hash it states
}

func newManifestGenerate(a *app) *cobra.Command {
	var file, format, subject, key string
	source := &manifestSource{app: a}
	cmd := &cobra.Command{
		Use: "generate {FILE.yaml | --from-gate}", Short: "Make the manifest of declarations written in YAML, or of the running gate",
		Long: "Make the manifest of declarations written in YAML, or of the running gate. A program in Go makes its own: see the package tool.",
		Example: `  gatehouse manifest generate tools.yaml
  gatehouse manifest generate tools.yaml --format yaml
  gatehouse manifest generate tools.yaml --out permissions.json --sign key.pem`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var m *manifest.Manifest
			var err error
			if source.fromGate {
				m, err = source.read(cmd, args)
			} else {
				m, err = generate(args[0], subject)
			}
			if err != nil {
				return err
			}
			if key != "" {
				private, err := readPrivateKey(key)
				if err != nil {
					return err
				}
				if err := m.Sign(private); err != nil {
					return err
				}
			}
			return writeManifest(out(cmd), m, format, file)
		},
	}
	cmd.Flags().StringVar(&file, "out", "", "write to this `file` instead of standard output")
	cmd.Flags().StringVar(&format, "format", "json", "json, or yaml for reading")
	cmd.Flags().StringVar(&subject, "subject", "", "the program's `name` (the file's name unless given)")
	cmd.Flags().StringVar(&key, "sign", "", "sign with the Ed25519 key in this PEM `file`")
	source.flag(cmd)
	return cmd
}

// generate makes the manifest of a file of declarations.
func generate(file, subject string) (*manifest.Manifest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set, err := declare.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, warning := range set.Lint() {
		fmt.Fprintf(os.Stderr, "gatehouse: %s: %s\n", file, warning)
	}
	if subject == "" {
		subject = filepath.Base(file)
	}
	return manifest.New(subject, set)
}

func writeManifest(w io.Writer, m *manifest.Manifest, format, file string) error {
	write := m.JSON
	switch format {
	case "json":
	case "yaml":
		write = m.YAML
	default:
		return usageError{fmt.Errorf("--format %s: use json or yaml", format)}
	}
	text, err := write()
	if err != nil {
		return err
	}
	if file != "" {
		return os.WriteFile(file, text, 0o644)
	}
	_, err = w.Write(text)
	return err
}

func readManifest(file string) (*manifest.Manifest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

func readPrivateKey(file string) (ed25519.PrivateKey, error) {
	der, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	private, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s: no Ed25519 private key in PKCS #8; make one with: openssl genpkey -algorithm ed25519", file)
	}
	return private, nil
}

func readPublicKey(file string) (ed25519.PublicKey, error) {
	der, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	public, ok := key.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s: no Ed25519 public key; make one with: openssl pkey -in key.pem -pubout", file)
	}
	return public, nil
}

func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", file)
	}
	return block.Bytes, nil
}

func newManifestInspect() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "inspect FILE.json", Args: cobra.ExactArgs(1), Short: "Check a manifest's hash and signature and print it",
		Example: `  gatehouse manifest inspect permissions.json --format yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := readManifest(args[0])
			if err != nil {
				return err
			}
			return writeManifest(out(cmd), m, format, "")
		},
	}
	cmd.Flags().StringVar(&format, "format", "yaml", "json or yaml")
	return cmd
}

func newManifestVerify(a *app) *cobra.Command {
	var baseline, format, key string
	source := &manifestSource{app: a}
	cmd := &cobra.Command{
		Use: "verify {FILE | --from-gate}", Short: "Tell in what a manifest goes beyond the one that was reviewed",
		Long: `Tell in what a manifest goes beyond the one that was reviewed. FILE is a manifest, or a YAML file of declarations.
It compares meanings: a narrower glob, host or limit passes.

Exit codes: 0 fine, 1 wider than the baseline, 2 usage, 3 error.`,
		Example: `  gatehouse manifest verify tools.yaml
  gatehouse manifest verify now.json --baseline permissions.json --format sarif`,
		RunE: func(cmd *cobra.Command, args []string) error {
			was, err := readManifest(baseline)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is no baseline %s yet; review the manifest of %s and make it the baseline with gatehouse manifest accept", baseline, source.name(args))
			}
			if err != nil {
				return err
			}
			now, err := source.read(cmd, args)
			if err != nil {
				return err
			}
			if key != "" {
				public, err := readPublicKey(key)
				if err != nil {
					return err
				}
				if !was.SignedBy(public) {
					return fmt.Errorf("%s is not signed with the key in %s", baseline, key)
				}
			}
			findings := manifest.Verify(was, now)
			if err := printWidening(out(cmd), findings, format, source.name(args)); err != nil {
				return err
			}
			if manifest.Widened(findings) {
				return exitWidened
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&baseline, "baseline", baselineFile, "the manifest that was reviewed")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or sarif")
	source.flag(cmd)
	cmd.Flags().StringVar(&key, "signed-by", "", "refuse a baseline that is not signed with the Ed25519 public key in this PEM `file`")
	return cmd
}

// readEither reads a manifest, or makes the one of a file of declarations.
func readEither(file string) (*manifest.Manifest, error) {
	if isYAML(file) {
		return generate(file, "")
	}
	return readManifest(file)
}

func printWidening(w io.Writer, findings []manifest.Finding, format, file string) error {
	switch format {
	case "text":
		for _, f := range findings {
			if _, err := fmt.Fprintf(w, "%-8s %-30s %s: %s\n", f.Severity, f.Code, f.Path, f.Message); err != nil {
				return err
			}
		}
		if !manifest.Widened(findings) {
			_, err := fmt.Fprintln(w, "OK: nothing goes beyond the baseline")
			return err
		}
		return nil
	case "json":
		if findings == nil {
			findings = []manifest.Finding{}
		}
		return json.MarshalWrite(w, map[string]any{"widened": manifest.Widened(findings), "findings": findings}, json.Deterministic(true), jsontext.WithIndent("  "))
	case "sarif":
		text, err := manifest.SARIF(findings, file, buildVersion())
		if err != nil {
			return err
		}
		_, err = w.Write(append(text, '\n'))
		return err
	}
	return usageError{fmt.Errorf("--format %s: use text, json or sarif", format)}
}

func newManifestAccept(a *app) *cobra.Command {
	var baseline string
	source := &manifestSource{app: a}
	cmd := &cobra.Command{
		Use: "accept {FILE | --from-gate}", Short: "Make a manifest the new baseline, after you have reviewed it",
		Example: `  gatehouse manifest accept tools.yaml
  gatehouse manifest accept now.json --baseline permissions.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			now, err := source.read(cmd, args)
			if err != nil {
				return err
			}
			if was, err := readManifest(baseline); err == nil {
				if err := printWidening(out(cmd), manifest.Verify(was, now), "text", source.name(args)); err != nil {
					return err
				}
			}
			if err := writeManifest(nil, now, "json", baseline); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out(cmd), "%s is the baseline now (sha256 %s)\n", baseline, now.SHA256)
			return err
		},
	}
	cmd.Flags().StringVar(&baseline, "baseline", baselineFile, "the `file` to write")
	source.flag(cmd)
	return cmd
}
