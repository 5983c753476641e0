package engine

import "context"

// Hibernate makes one sweep, after which creatures may hibernate.
func (e *Engine) Hibernate(ctx context.Context) { e.core.hibernate(ctx) }
