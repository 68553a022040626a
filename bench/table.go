package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// row is a figure with its measurement and what comes of it.
type row struct {
	Figure string `json:"figure"`
	// Value and Base are in Unit and BaseUnit; Ratio is one through the other.
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Base     float64 `json:"base,omitzero"`
	BaseUnit string  `json:"base_unit,omitzero"`
	Ratio    float64 `json:"ratio,omitzero"`
	Bar      string  `json:"bar,omitzero"`
	// Verdict is ok, over, under, "not measured" or, without a bar, "".
	Verdict string `json:"verdict"`
}

const notMeasured = "not measured"

// judge holds the measurements against the bars.
func judge(chosen []figure, by map[string]measured) []row {
	var rows []row
	for _, f := range chosen {
		r := row{Figure: f.name, Unit: f.value.unit, BaseUnit: f.base.unit}
		value, ok := by[f.pkg].values[f.value]
		base, ok2 := by[f.pkg].values[f.base]
		hasBase := f.base != metric{}
		judged := value
		if hasBase {
			judged = value / base
		}
		if !f.none {
			r.Bar = barText(f)
		}
		switch {
		case !ok || hasBase && !ok2 || math.IsNaN(judged) || math.IsInf(judged, 0):
			r.Verdict = notMeasured
			rows = append(rows, r)
			continue
		case f.none:
		case f.atLeast && judged < f.bar:
			r.Verdict = "under"
		case !f.atLeast && judged > f.bar:
			r.Verdict = "over"
		default:
			r.Verdict = "ok"
		}
		r.Value = value
		if hasBase {
			r.Base, r.Ratio = base, judged
		}
		rows = append(rows, r)
	}
	return rows
}

func barText(f figure) string {
	sign := "≤ "
	if f.atLeast {
		sign = "≥ "
	}
	text := sign + strconv.FormatFloat(f.bar, 'g', -1, 64)
	if (f.base != metric{}) {
		return text + "×"
	}
	return text + " " + f.value.unit
}

// missed reports whether a bar was missed or not measured.
func missed(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.Verdict != "ok" && r.Verdict != "" })
}

func printTable(out io.Writer, rows []row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tmeasured\tbaseline\tratio\tbar\t")
	for _, r := range rows {
		value, base, ratio := "-", "-", "-"
		if r.Verdict != notMeasured {
			value = number(r.Value) + " " + r.Unit
			if r.BaseUnit != "" {
				base, ratio = number(r.Base)+" "+r.BaseUnit, number(r.Ratio)+"×"
			}
		}
		fmt.Fprintln(t, strings.Join([]string{r.Figure, value, base, ratio, r.Bar, r.Verdict}, "\t"))
	}
	t.Flush()
}

func printJSON(out io.Writer, rows []row) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

// number prints three figures that count, and whole numbers whole.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
