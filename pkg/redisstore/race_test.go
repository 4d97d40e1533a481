//go:build race

package redisstore_test

func init() { racing = true }
