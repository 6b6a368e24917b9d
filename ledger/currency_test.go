package ledger

import "testing"

// Providers count in ISO 4217's minor units, where locales print other ones.
func TestExponentsAreISO4217(t *testing.T) {
	for unit, want := range map[Unit]int{
		"USD": 2, "EUR": 2, "JPY": 0, "KRW": 0, "CLP": 0, "ISK": 0, "XOF": 0, "KWD": 3, "TND": 3,
		"IDR": 2, "PKR": 2, "COP": 2, "HUF": 2, "TWD": 2, "LBP": 2, "IRR": 2, "CRC": 2, "IQD": 3, // CLDR differs
		"VES": 2, "VED": 2, "MRU": 2, "STN": 2, "BYN": 2, "SLE": 2, "XCG": 2, "ZWG": 2, // new
		"BGN": 2, // replaced by the euro, and in books
	} {
		if n, ok := unit.Exponent(); !ok || n != want {
			t.Errorf("%s has %d decimals (%v), want %d", unit, n, ok, want)
		}
	}
	for _, none := range []Unit{"", "usd", "ga", "USDX", "US", "USD.AUTH", "QQQ",
		"CLF", "UYI", "XAU", "XDR", "XTS", "XXX", // funds, metals, tests, nothing
		"DEM", "VEF", "SLL", "ZWL"} { // of the past
		if n, ok := none.Exponent(); ok {
			t.Errorf("%q is a currency of %d decimals", none, n)
		}
	}
}
