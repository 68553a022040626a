package aql

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Group is operations that stand on the same things.
type Group interface {
	// Operations lists them.
	Operations() []Operation
}

// Native performs native operations.
type Native struct {
	ops map[string]Operation
}

// New puts groups together. An operation that is not in the table of
// [call.Operations] under this very name, or that stands in two groups, is a
// mistake of whoever wrote the group.
func New(groups ...Group) (*Native, error) {
	n := &Native{ops: make(map[string]Operation)}
	for _, g := range groups {
		for _, op := range g.Operations() {
			row, ok := call.LookupOperation(op.Name)
			if !ok || row.Name != op.Name {
				return nil, fmt.Errorf("%s is not the name of an operation of the table", op.Name)
			}
			if _, twice := n.ops[op.Name]; twice {
				return nil, fmt.Errorf("%s is performed by two groups", op.Name)
			}
			n.ops[op.Name] = op
		}
	}
	return n, nil
}

// Serves says whether an operation is performed here.
func (n *Native) Serves(operation string) bool {
	_, ok := n.ops[operation]
	return ok
}

// Reversible says whether what an operation does can be taken back, because it
// changes nothing or keeps what it changes.
func (n *Native) Reversible(operation string) bool {
	row, ok := call.LookupOperation(operation)
	return n.ops[operation].reversible || ok && row.Endpoint == call.Read && !row.Ungatable
}

// Params lists the parameters of an operation.
func (n *Native) Params(operation string) []Param { return n.ops[operation].Params }

// Check says what is wrong with the parameters of an operation.
func (n *Native) Check(operation string, args jsontext.Value) error {
	_, err := n.prepare(operation, args)
	return err
}

// Run performs the operation of a call that was let through.
func (n *Native) Run(ctx context.Context, j *Job) (any, error) {
	run, err := n.prepare(j.Operation, j.Args)
	if err != nil {
		return nil, err
	}
	return run(ctx, j)
}

func (n *Native) prepare(operation string, args jsontext.Value) (func(context.Context, *Job) (any, error), error) {
	op, ok := n.ops[operation]
	if !ok {
		return nil, fmt.Errorf("%s is not performed by this gate", operation)
	}
	return op.prepare(args)
}
