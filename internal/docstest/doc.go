// Package docstest has no code of its own: its tests keep the documentation
// true. They run the commands that pages show and compare what they
// print, load every recipe, compile and run every Go program, run the examples,
// follow the links, and compare reference pages and pictures with what they show.
//
// The language of a fenced block, and a comment right before it, say what the block is
// for:
//
//	```console                 commands after "$ " and what they print; "> " continues
//	                           a command, and … stands for any text, or for any lines
//	<!-- run -->   ```sh       a script that has to succeed
//	<!-- not run -->           a block that is left alone
//	<!-- exit N -->            the commands end with another code than 0
//	<!-- file: NAME -->        the content of a file that later commands use
//	<!-- needs: TOOL -->       commands that need a guest toolchain; the page is skipped without it;
//	                           a command, such as python3 -m ziglang version, has to succeed
//	<!-- if: TOOL -->          commands that are left out where a program is missing
//	```hcl                     a complete recipe
//	<!-- with: lines alerts -->  ```hcl   a part of one, which refers to these channels
//	```go                      a complete program
//	<!-- output -->            what the program before it prints
//
// The commands of a page run one after the other in a folder that is empty at first.
// The command terrarium is on the PATH, and $TERRARIUM is the folder of the repository.
package docstest
