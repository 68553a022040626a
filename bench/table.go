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
		if !f.none {
			r.Bar = barText(f)
		}
		var ok bool
		if r.Value, r.Base, r.Ratio, ok = f.read(by[f.pkg]); !ok {
			r.Value, r.Base, r.Ratio, r.Verdict = 0, 0, 0, notMeasured
			rows = append(rows, r)
			continue
		}
		judged := r.Value
		if f.compared() {
			judged = r.Ratio
		}
		switch {
		case f.none:
		case f.atLeast && judged < f.bar:
			r.Verdict = "under"
		case !f.atLeast && judged > f.bar:
			r.Verdict = "over"
		default:
			r.Verdict = "ok"
		}
		rows = append(rows, r)
	}
	return rows
}

// compared reports whether the bar is on a ratio.
func (f figure) compared() bool { return f.base != metric{} || f.ratio != metric{} }

// read finds the numbers of a figure; ok is false when one is missing or makes
// no sense.
func (f figure) read(m measured) (value, base, ratio float64, ok bool) {
	value, ok = m.worst(f.value, f.atLeast)
	if (f.base != metric{}) {
		found := false
		base, found = m.worst(f.base, f.atLeast)
		ratio, ok = value/base, ok && found
	}
	if (f.ratio != metric{}) {
		found := false
		ratio, found = m.worst(f.ratio, f.atLeast)
		ok = ok && found
	}
	return value, base, ratio, ok && !math.IsNaN(ratio) && !math.IsInf(ratio, 0)
}

// worst finds a metric; where its name ends in a star, the one furthest from
// the good side.
func (m measured) worst(want metric, moreIsBetter bool) (value float64, ok bool) {
	prefix, star := strings.CutSuffix(want.bench, "*")
	if !star {
		value, ok = m.values[want]
		return value, ok
	}
	for have, v := range m.values {
		if have.unit != want.unit || !strings.HasPrefix(have.bench, prefix) {
			continue
		}
		if !ok || moreIsBetter && v < value || !moreIsBetter && v > value {
			value, ok = v, true
		}
	}
	return value, ok
}

func barText(f figure) string {
	sign := "≤ "
	if f.atLeast {
		sign = "≥ "
	}
	text := sign + strconv.FormatFloat(f.bar, 'g', -1, 64)
	if f.compared() {
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
				base = number(r.Base) + " " + r.BaseUnit
			}
			if r.Ratio != 0 {
				ratio = number(r.Ratio) + "×"
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
