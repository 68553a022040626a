package daemon

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// observer looks at the machine.
type observer struct {
	machine *observe.Machine
}

// Facts describes a call.
func (o observer) Facts(ctx context.Context, c *call.Call, s *policy.Snapshot) (*facts.Facts, *element.Change) {
	return o.machine.Facts(ctx, c, s), nil
}
