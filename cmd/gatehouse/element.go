package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
)

func newElement(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "element", Short: "Elements (personas, skills …) and the policies they carry",
		Example: `  gatehouse element lint personas/careful.md
  gatehouse element active --credential-file me.key
  gatehouse element accept coder persona/careful --credential-file me.key --code 123456
  gatehouse element release coder persona/careful --credential-file me.key --code 123456`,
	})
	cmd.AddCommand(newElementLint(a), newElementActive(a), newElementAccept(a), newElementRelease(a))
	return cmd
}

// linted is what is wrong with one file.
type linted struct {
	File     string            `json:"file"`
	OK       bool              `json:"ok"`
	Problems []element.Problem `json:"problems,omitzero"`
}

func newElementLint(a *app) *cobra.Command {
	var kind string
	cmd := a.withJSON(&cobra.Command{
		Use: "lint FILE...", Short: "Find everything that is wrong with elements' files", Args: cobra.MinimumNArgs(1),
		Long: "Find everything that is wrong with elements' files. The type of an element is its folder's (personas, skills …), or --type.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []linted
			bad := false
			for _, path := range args {
				l, err := lintElement(path, kind)
				if err != nil {
					return err
				}
				all, bad = append(all, l), bad || !l.OK
			}
			if err := a.printLinted(cmd, all); err != nil {
				return err
			}
			if bad {
				return codeError(1)
			}
			return nil
		},
	})
	cmd.Flags().StringVar(&kind, "type", "", "the type of the elements, if their folder does not say it")
	return cmd
}

func lintElement(path, kind string) (linted, error) {
	if kind == "" {
		kind = filepath.Base(filepath.Dir(path))
	}
	kind = call.SingularType(kind)
	known := false
	for _, t := range call.ElementTypes() {
		known = known || t == kind
	}
	if !known {
		return linted{}, fmt.Errorf("%s: the folder does not say which type of element it is; use --type with one of %s", path, strings.Join(call.ElementTypes(), ", "))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return linted{}, err
	}
	format := element.YAML
	if filepath.Ext(path) == ".md" {
		format = element.Markdown
	}
	doc, err := element.Parse(kind, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), format, data)
	if err != nil {
		return linted{File: path, Problems: []element.Problem{{Text: err.Error(), Fatal: true}}}, nil
	}
	e := doc.Element()
	return linted{File: path, OK: e.Quarantine == "", Problems: doc.Problems}, nil
}

func (a *app) printLinted(cmd *cobra.Command, all []linted) error {
	if a.json {
		return printJSON(out(cmd), map[string]any{"files": all})
	}
	for _, l := range all {
		for _, p := range l.Problems {
			word := "remark"
			if p.Fatal {
				word = paint(out(cmd), red, "problem")
			}
			fmt.Fprintf(out(cmd), "%s: %s: %s\n", l.File, word, p)
		}
		if l.OK {
			fmt.Fprintf(out(cmd), "%s: loads\n", l.File)
		}
	}
	return nil
}

func newElementActive(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "active", Short: "Show which elements are in force for whom, and what waits", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &admin.Elements{}
			return a.show(cmd, "/v1/elements", got, func() error {
				var rows [][]string
				for _, s := range got.Active {
					for _, e := range s.Active {
						rows = append(rows, []string{s.Agent, s.Workspace, e.ID(), e.By, stamp(e.At), e.Broken})
					}
				}
				for _, s := range got.Staged {
					rows = append(rows, []string{s.Agent, s.Workspace, s.Element, "", stamp(s.Since), "changed on disk, waits: " + strings.Join(s.Changes, "; ")})
				}
				return table(out(cmd), "agent,workspace,element,by,since,remark", rows)
			})
		},
	})
}

func newElementAccept(a *app) *cobra.Command {
	in := &api.ElementRequest{}
	cmd := &cobra.Command{
		Use: "accept AGENT TYPE/NAME", Short: "Take a change of an element's file that loosens", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &admin.Elements{}
			if err := a.do(cmd, "GET", "/v1/elements", nil, got); err != nil {
				return err
			}
			for _, s := range got.Staged {
				if s.Agent == args[0] && s.Element == args[1] && s.Workspace == in.Workspace {
					in.Agent, in.Element, in.Digest = s.Agent, s.Element, s.Digest
					return a.do(cmd, "POST", "/v1/elements/accept", in, nil)
				}
			}
			return errors.New("no such change waits; `gatehouse element active` shows what does")
		},
	}
	addElementFlags(cmd, in)
	return cmd
}

func newElementRelease(a *app) *cobra.Command {
	in := &api.ElementRequest{}
	cmd := &cobra.Command{
		Use: "release AGENT TYPE/NAME", Short: "Take an element out of force for an agent", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Agent, in.Element = args[0], args[1]
			return a.do(cmd, "POST", "/v1/elements/release", in, nil)
		},
	}
	addElementFlags(cmd, in)
	return cmd
}

func addElementFlags(cmd *cobra.Command, in *api.ElementRequest) {
	cmd.Flags().StringVar(&in.Workspace, "workspace", "", "the workspace it is in force in; left out: sessions without one")
	cmd.Flags().StringVar(&in.Code, "code", "", "one-time code of your authenticator")
}
