package seats_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
