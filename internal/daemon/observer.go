package daemon

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// observer looks at the machine and at the elements.
type observer struct {
	machine *observe.Machine
	keeper  *activation.Keeper
}

// Facts describes a call. What a native call rests on are the files of its
// element, so its world is theirs: the operation compares it with the files it
// then finds.
func (o observer) Facts(ctx context.Context, c *call.Call, s *policy.Snapshot) (*facts.Facts, *element.Change) {
	f := o.machine.Facts(ctx, c, s)
	if c.Kind != call.Native {
		return f, nil
	}
	p := o.keeper.Propose(ctx, c)
	if !p.World.IsZero() {
		f.World = p.World
	}
	f.Observed = append(f.Observed, p.Observed...)
	return f, p.Change
}
