//go:build race

package memstore_test

func init() { racing = true }
