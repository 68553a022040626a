package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

func newInit(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented starting policy", Args: cobra.MaximumNArgs(1),
		Example: `  gatehouse init                 # into the data directory
  gatehouse init .gatehouse.toml # for one project`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := place.Find(a.home)
			if err != nil {
				return err
			}
			path := p.Policy()
			if len(args) == 1 {
				path = args[0]
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, os.ErrExist) {
				return fmt.Errorf("%s is there already; it was left as it is", path)
			}
			if err != nil {
				return err
			}
			_, err = f.Write(policy.Starter())
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(out(cmd), "Wrote %s. Read it, change it, then: gatehouse policy lint %s\n", path, path)
			return err
		},
	}
}
