package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// answerFor tells a running gate about this process, so that it is ended when
// the agent that started it is blocked, and does not start if it is. Without a
// gate there is nobody to block anyone.
func (a *app) answerFor(ctx context.Context, command []string) error {
	c, err := a.asAgent()
	if err != nil {
		return err
	}
	err = c.Do(ctx, "POST", "/v1/processes", &api.ProcessRequest{What: strings.Join(command, " ")}, nil)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		fmt.Fprintln(os.Stderr, "gatehouse:", refused.Text)
		return codeError(sandbox.ExitRefused)
	}
	return nil
}
