package capability

import (
	"fmt"
	"strconv"
	"strings"
)

// million is how many units of money a currency has.
const million = 1_000_000

// ParseMoney reads a sum of money such as 2.50, with at most 6 decimals, in millionths.
func ParseMoney(text string) (millionths int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || len(whole) > 9 || len(fraction) > 6 || strings.HasSuffix(text, ".") || strings.ContainsAny(text, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 62)
	return int64(n), err == nil
}

// FormatMoney writes a sum of money, with at least two decimals.
func FormatMoney(millionths int64) string {
	text := fmt.Sprintf("%d.%06d", millionths/million, millionths%million)
	cents := len(text) - len("0000")
	return text[:cents] + strings.TrimRight(text[cents:], "0")
}
