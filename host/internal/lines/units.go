package lines

import (
	"debug/dwarf"
	"errors"
)

// Bounds on what debug/dwarf prepares for all units before it reads any. Large
// programs have some thousand units, and some hundred kilobytes of
// abbreviations.
const (
	maxUnits         = 1 << 16
	maxAbbreviations = 2 << 20 // bytes of all tables that units refer to
	maxAttributes    = 256     // of one entry; compilers write some twenty
)

var errUnusual = errors.New("the debugging information is not like that of a compiler")

// unit is the place of a unit in the section info.
type unit struct{ first, end dwarf.Offset } // the entry of the unit itself, and its end

// The kinds of units with code.
const (
	kindCompile = 1
	kindPartial = 3
)

// units finds the units of code, and checks that reading them takes memory and
// time in proportion to their size.
func (s Sections) units(l *limit) ([]unit, error) {
	c := cursor{data: s["info"]}
	whole := len(c.data)
	var units []unit
	tables := map[uint64]bool{}
	left := maxAbbreviations
	for n := 0; len(c.data) > 0; n++ {
		first := whole - len(c.data) + 11 // version 4 and before: size, version, table, size of an address
		u := cursor{data: c.bytes(c.u32())}
		kind := byte(kindCompile)
		if version := u.u16(); version == 5 {
			kind, first = u.u8(), first+1
			u.u8() // size of an address
		}
		table := u.u32()
		if c.failed || u.failed || n == maxUnits {
			return nil, errUnusual
		}
		if !tables[table] {
			tables[table] = true
			if left -= s.abbreviations(table, left, l); left < 0 {
				return nil, errUnusual
			}
		}
		if end := whole - len(c.data); (kind == kindCompile || kind == kindPartial) && first < end {
			units = append(units, unit{dwarf.Offset(first), dwarf.Offset(end)})
		}
	}
	return units, nil
}

// abbreviations returns the size of a table, or more than most if it is larger
// or not to be read.
func (s Sections) abbreviations(table uint64, most int, l *limit) int {
	c := cursor{data: s["abbrev"]}
	c.bytes(table)
	c.data = c.data[:min(len(c.data), most)]
	whole := len(c.data)
	for !c.failed {
		if c.uleb() == 0 && !c.failed {
			return whole - len(c.data)
		}
		c.uleb() // tag
		c.u8()   // whether there are children
		for n := 0; ; n++ {
			attribute, form := c.uleb(), c.uleb()
			if attribute == 0 && form == 0 {
				break
			}
			const implicitConst = 0x21
			if form == implicitConst {
				c.sleb()
			}
			if n == maxAttributes || c.failed || !l.goOn() {
				return most + 1
			}
		}
	}
	return most + 1
}

// data opens the sections with debug/dwarf.
func (s Sections) data() (*dwarf.Data, error) {
	d, err := dwarf.New(s["abbrev"], nil, nil, s["info"], s["line"], nil, s["ranges"], s["str"])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists"} {
		if s[name] != nil {
			if err := d.AddSection(prefix+name, s[name]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}
