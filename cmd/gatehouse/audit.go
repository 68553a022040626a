package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

func newAudit(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "audit", Short: "Read the log, and prove that nobody changed it",
		Example: `  gatehouse audit list --outcome denied --credential-file me.key
  gatehouse audit show c_… --credential-file me.key
  gatehouse audit export --credential-file me.key > log.jsonl
  gatehouse audit verify --credential-file me.key
  gatehouse audit verify --file log.jsonl --key log.pub --checkpoint old-checkpoint
  gatehouse audit prove 42 --credential-file me.key > proof.json`,
	})
	cmd.AddCommand(newAuditList(a), newAuditShow(a), newAuditExport(a), newAuditVerify(a), newAuditProve(a))
	return cmd
}

func newAuditList(a *app) *cobra.Command {
	q := url.Values{}
	var limit int
	cmd := a.withJSON(&cobra.Command{
		Use: "list", Short: "List records, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"kind", "principal", "session", "surface", "operation", "level", "outcome", "call", "since", "until", "cursor"} {
				if v, err := cmd.Flags().GetString(name); err == nil && v != "" {
					q.Set(name, v)
				}
			}
			q.Set("limit", strconv.Itoa(limit))
			got := &api.LogPage{}
			return a.show(cmd, "/v1/log?"+q.Encode(), got, func() error {
				var rows [][]string
				for _, r := range got.Records {
					index := "-"
					if r.Index >= 0 {
						index = strconv.FormatInt(r.Index, 10)
					}
					rows = append(rows, []string{index, stamp(r.Time), r.Kind, r.Principal, r.Operation, r.Level, r.Outcome, r.CallID})
				}
				if err := table(out(cmd), "index,time,kind,who,operation,level,outcome,call", rows); err != nil {
					return err
				}
				if got.Next != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "more: --cursor %s\n", got.Next)
				}
				return nil
			})
		},
	})
	f := cmd.Flags()
	for name, help := range map[string]string{
		"kind": "call, verdict, outcome or admin", "principal": "agent or approver", "session": "session id", "surface": "where it came in",
		"operation": "operation", "level": "level of the decision", "outcome": "allowed, denied, pending, succeeded …", "call": "call id",
		"since": "from this time on (RFC 3339)", "until": "before this time (RFC 3339)", "cursor": "where the page before ended",
	} {
		f.String(name, "", help)
	}
	f.IntVar(&limit, "limit", 50, "how many")
	return cmd
}

func newAuditShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show CALL|RECORD", Short: "Show all records of a call, or one record", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &api.LogPage{}
			if err := a.do(cmd, "GET", "/v1/log/calls/"+url.PathEscape(args[0]), nil, got); err != nil {
				return err
			}
			if len(got.Records) == 0 {
				one := &admin.Record{}
				if err := a.do(cmd, "GET", "/v1/log/"+url.PathEscape(args[0]), nil, one); err != nil {
					return err
				}
				got.Records = append(got.Records, *one)
			}
			if a.json {
				return printJSON(out(cmd), got.Records)
			}
			for _, r := range got.Records {
				fmt.Fprintf(out(cmd), "%s  %s %s  %s %s %s\n", stamp(r.Time), paint(out(cmd), bold, r.Kind), r.ID, match.Visible(r.Operation), r.Level, r.Outcome)
				body := jsontext.Value(bytes.Clone(r.Body))
				if err := body.Indent(jsontext.WithIndent("  ")); err == nil {
					fmt.Fprintln(out(cmd), match.VisibleLines(string(body)))
				}
			}
			return nil
		},
	})
}

func newAuditExport(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "Write the whole log as JSON Lines, with all that verifying it needs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return c.Stream(cmd.Context(), "/v1/log/export", out(cmd))
		},
	}
}

func newAuditVerify(a *app) *cobra.Command {
	var file, key, checkpoint string
	cmd := a.withJSON(&cobra.Command{
		Use: "verify", Short: "Recompute the log and find whatever was changed, removed, inserted or reordered",
		Long: `Recomputes every hash of the log from an export of it and compares it with the
signed checkpoints. It needs the public key alone, so anyone can run it. Keep a
checkpoint elsewhere and give it with --checkpoint: then nobody, not even the
holder of the gate's key, can rewrite what came before it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := a.verify(cmd, file, key, checkpoint)
			if err != nil {
				return err
			}
			if a.json {
				if err := printJSON(out(cmd), report); err != nil {
					return err
				}
			} else {
				printReport(out(cmd), report)
			}
			if !report.OK() {
				return codeError(1)
			}
			return nil
		},
	})
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "verify this export instead of the running gate's log (\"-\" reads standard input)")
	f.StringVar(&key, "key", "", "file with the log's public key (default: log.pub in the data directory)")
	f.StringVar(&checkpoint, "checkpoint", "", "file with a checkpoint you kept: the log must contain it")
	return cmd
}

func (a *app) verify(cmd *cobra.Command, file, key, checkpoint string) (*audit.Report, error) {
	p, err := place.Find(a.home)
	if err != nil {
		return nil, err
	}
	if key == "" {
		key = p.PublicKey()
	}
	public, err := os.ReadFile(key)
	if err != nil {
		return nil, fmt.Errorf("the log's public key cannot be read (--key names it): %w", err)
	}
	var opts audit.VerifyOptions
	if checkpoint != "" {
		if opts.Checkpoint, err = os.ReadFile(checkpoint); err != nil {
			return nil, err
		}
	}
	if file == "" {
		return a.verifyRunning(cmd, string(public), opts)
	}
	in := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return audit.VerifyExport(in, string(public), opts)
}

// verifyRunning verifies the log of the running gate as it is exported.
func (a *app) verifyRunning(cmd *cobra.Command, public string, opts audit.VerifyOptions) (*audit.Report, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(c.Stream(cmd.Context(), "/v1/log/export", w)) }()
	report, err := audit.VerifyExport(r, public, opts)
	r.Close()
	if errors.Is(err, client.ErrNoDaemon) {
		return nil, fmt.Errorf("%w, or give an export with --file", client.ErrNoDaemon)
	}
	return report, err
}

func printReport(w io.Writer, r *audit.Report) {
	if r.OK() {
		fmt.Fprintf(w, "%s %d records, %d checkpoints: nothing was changed, removed, inserted or reordered.\n", paint(w, green, "Verified:"), r.Size, r.Checkpoints)
		return
	}
	fmt.Fprintln(w, paint(w, red, "The log does not verify:"))
	for _, p := range r.Problems {
		fmt.Fprintln(w, "  "+match.Visible(p.String()))
	}
}

func newAuditProve(a *app) *cobra.Command {
	var check, key string
	cmd := &cobra.Command{
		Use: "prove INDEX", Short: "Print a proof that a record is in the log; --check reads one", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check != "" {
				return a.checkProof(cmd, check, key)
			}
			if len(args) != 1 {
				return usageError{errors.New("name the index of a record (`gatehouse audit list` shows it), or a proof with --check")}
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return c.Stream(cmd.Context(), "/v1/log/proof/"+url.PathEscape(args[0]), out(cmd))
		},
	}
	cmd.Flags().StringVar(&check, "check", "", "check the proof in this file; it needs the public key alone")
	cmd.Flags().StringVar(&key, "key", "", "file with the log's public key (default: log.pub in the data directory)")
	return cmd
}

func (a *app) checkProof(cmd *cobra.Command, file, key string) error {
	p, err := place.Find(a.home)
	if err != nil {
		return err
	}
	if key == "" {
		key = p.PublicKey()
	}
	public, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	proven, err := audit.CheckProof(doc, string(public))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out(cmd), "%s %s\n", paint(out(cmd), green, "Proven:"), match.Visible(fmt.Sprint(proven)))
	return err
}
