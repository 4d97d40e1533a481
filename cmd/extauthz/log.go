package main

import (
	"io"
	"log/slog"

	"github.com/sluice-mesh/sluice/internal/config"
)

func newLogger(w io.Writer, settings config.Settings) *slog.Logger {
	o := &slog.HandlerOptions{Level: settings.Level()}
	if settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
