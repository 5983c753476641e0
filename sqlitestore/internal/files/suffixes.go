package files

// Suffixes of the names of files.
const (
	StoreSuffix = ".db"
	// PartialSuffix marks a file that is not whole yet, and may be deleted.
	PartialSuffix = ".new"
	// OrphanSuffix marks a file that has been set aside.
	OrphanSuffix = ".orphan"
)
