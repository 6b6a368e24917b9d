package buckets

import (
	"errors"
	"strings"

	"github.com/shopspring/decimal"
)

// maxRateText bounds a rate's text: 0 to 1 with at most six decimals.
const maxRateText = 8

// Rate is a share such as a tax rate: a decimal from 0 to 1 with at most six
// decimals, given as a JSON string or number, without an exponent.
type Rate struct {
	decimal.Decimal
	err error // told when the field is checked, which knows its name
}

var errRate = errors.New("must be a decimal from 0 to 1 with at most 6 decimals, such as 0.07")

// UnmarshalJSON parses a rate from its text, never through a float.
func (r *Rate) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	r.err = errRate
	if s == "" || len(s) > maxRateText || strings.Trim(s, "0123456789.") != "" {
		return nil
	}
	d, err := decimal.NewFromString(s)
	if err != nil || d.GreaterThan(decimal.NewFromInt(1)) {
		return nil
	}
	r.Decimal, r.err = d, nil
	return nil
}
