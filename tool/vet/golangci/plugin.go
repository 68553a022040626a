package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/seed-3ebc6b8a/gatehouse/tool/vet"
)

// golangci-lint knows its plugins by what registered while it was initialised.
func init() {
	register.Plugin("gatehouse", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

// BuildAnalyzers returns both rules.
func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{vet.Declared, vet.Undeclared}, nil
}

// GetLoadMode asks for types: the checker follows calls.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
