//go:build !linux

package job

import (
	"errors"
	"io"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

var errNoTrees = errors.New("process trees cannot be held and ended for sure on this system: jobs run on Linux only")

type holder struct{}

func newHolder() (*holder, error) { return nil, errNoTrees }

func (*holder) process() session.Process  { return session.Process{} }
func (*holder) start(string, *Spec) error { return errNoTrees }
func (*holder) stdin() io.WriteCloser     { return nil }
func (*holder) stdout() io.ReadCloser     { return nil }
func (*holder) stderr() io.ReadCloser     { return nil }
func (*holder) kill()                     {}
func (*holder) wait() ending              { return ending{Code: ExitFailure, Failed: errNoTrees.Error()} }
func (*holder) release()                  {}

func endLeft([]Job, time.Duration) []int { return nil }

func tidyGroups() {}
