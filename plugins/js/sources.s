# The scripts that js.c starts, each as a text with a NUL at its end.
	.macro source name file
	.section .rodata.\name,"",@
	.globl \name
\name:
	.incbin "\file"
	.int8 0
	.size \name, . - \name
	.endm

	source abi_js "sdk/js/abi.js"
	source runtime_js "sdk/js/runtime.js"
	source harden_js "plugins/js/harden.js"
