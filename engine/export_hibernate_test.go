package engine

import "context"

// Hibernate sweeps once.
func (e *Engine) Hibernate(ctx context.Context) { e.core.hibernate(ctx) }
