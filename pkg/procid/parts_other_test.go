//go:build !linux

package procid

import "holdfast/internal/testkit"

func parts() map[string]testkit.Part { return nil }
