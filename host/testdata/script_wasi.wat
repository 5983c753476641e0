;; Calls every function of WASI preview 1 with the arguments that a test chooses.
;;
;; The payload is a script. It is read to address 4096:
;;   u32 status, u32 count, then count calls of 56 bytes:
;;   u64 number of the function, six u64 arguments.
;; The rest of the payload is data that the arguments may point to. The results,
;; as i64, are logged at the level debug, and status is returned.
(module
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_res_get" (func $clock_res_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_advise" (func $fd_advise (param i32 i64 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_allocate" (func $fd_allocate (param i32 i64 i64) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_datasync" (func $fd_datasync (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $fd_fdstat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_set_flags" (func $fd_fdstat_set_flags (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_fdstat_set_rights" (func $fd_fdstat_set_rights (param i32 i64 i64) (result i32)))
  (import "wasi_snapshot_preview1" "fd_filestat_get" (func $fd_filestat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $fd_filestat_set_size (param i32 i64) (result i32)))
  (import "wasi_snapshot_preview1" "fd_filestat_set_times" (func $fd_filestat_set_times (param i32 i64 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread" (func $fd_pread (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $fd_prestat_dir_name (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pwrite" (func $fd_pwrite (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_readdir" (func $fd_readdir (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_renumber" (func $fd_renumber (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_seek" (func $fd_seek (param i32 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_sync" (func $fd_sync (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_tell" (func $fd_tell (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_create_directory" (func $path_create_directory (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_filestat_get" (func $path_filestat_get (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_filestat_set_times" (func $path_filestat_set_times (param i32 i32 i32 i32 i64 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_link" (func $path_link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_readlink" (func $path_readlink (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_remove_directory" (func $path_remove_directory (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_rename" (func $path_rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_symlink" (func $path_symlink (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $path_unlink_file (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_raise" (func $proc_raise (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $sched_yield (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $sock_accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_recv" (func $sock_recv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_send" (func $sock_send (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_shutdown" (func $sock_shutdown (param i32 i32) (result i32)))
  (import "terrarium_v1" "read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "terrarium_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "terrarium_abi_v1"))

  (func $arg (param $call i32) (param $n i32) (result i64)
    (i64.load offset=8 (i32.add (local.get $call) (i32.shl (local.get $n) (i32.const 3)))))
  (func $arg32 (param $call i32) (param $n i32) (result i32)
    (i32.wrap_i64 (call $arg (local.get $call) (local.get $n))))

  (func $dispatch (param $c i32) (result i64)
    (block $none
    (block $f44
    (block $f43
    (block $f42
    (block $f41
    (block $f40
    (block $f39
    (block $f38
    (block $f37
    (block $f36
    (block $f35
    (block $f34
    (block $f33
    (block $f32
    (block $f31
    (block $f30
    (block $f29
    (block $f28
    (block $f27
    (block $f26
    (block $f25
    (block $f24
    (block $f23
    (block $f22
    (block $f21
    (block $f20
    (block $f19
    (block $f18
    (block $f17
    (block $f16
    (block $f15
    (block $f14
    (block $f13
    (block $f12
    (block $f11
    (block $f10
    (block $f9
    (block $f8
    (block $f7
    (block $f6
    (block $f5
    (block $f4
    (block $f3
    (block $f2
    (block $f1
    (block $f0
      (br_table $f0 $f1 $f2 $f3 $f4 $f5 $f6 $f7 $f8 $f9 $f10 $f11 $f12 $f13 $f14 $f15 $f16 $f17 $f18 $f19 $f20 $f21 $f22 $f23 $f24 $f25 $f26 $f27 $f28 $f29 $f30 $f31 $f32 $f33 $f34 $f35 $f36 $f37 $f38 $f39 $f40 $f41 $f42 $f43 $f44 $none (i32.wrap_i64 (i64.load (local.get $c))))
    )
    (return (i64.extend_i32_s (call $args_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $args_sizes_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $environ_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $environ_sizes_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $clock_res_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $clock_time_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $fd_advise (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)) (call $arg (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $fd_allocate (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)) (call $arg (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $fd_close (call $arg32 (local.get $c) (i32.const 0)))))
    )
    (return (i64.extend_i32_s (call $fd_datasync (call $arg32 (local.get $c) (i32.const 0)))))
    )
    (return (i64.extend_i32_s (call $fd_fdstat_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_fdstat_set_flags (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_fdstat_set_rights (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)) (call $arg (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $fd_filestat_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_filestat_set_size (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_filestat_set_times (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)) (call $arg (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $fd_pread (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $fd_prestat_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_prestat_dir_name (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $fd_pwrite (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $fd_read (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $fd_readdir (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $fd_renumber (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_seek (call $arg32 (local.get $c) (i32.const 0)) (call $arg (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $fd_sync (call $arg32 (local.get $c) (i32.const 0)))))
    )
    (return (i64.extend_i32_s (call $fd_tell (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $fd_write (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $path_create_directory (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $path_filestat_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $path_filestat_set_times (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg (local.get $c) (i32.const 4)) (call $arg (local.get $c) (i32.const 5)) (call $arg32 (local.get $c) (i32.const 6)))))
    )
    (return (i64.extend_i32_s (call $path_link (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)) (call $arg32 (local.get $c) (i32.const 5)) (call $arg32 (local.get $c) (i32.const 6)))))
    )
    (return (i64.extend_i32_s (call $path_open (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)) (call $arg (local.get $c) (i32.const 5)) (call $arg (local.get $c) (i32.const 6)) (call $arg32 (local.get $c) (i32.const 7)) (call $arg32 (local.get $c) (i32.const 8)))))
    )
    (return (i64.extend_i32_s (call $path_readlink (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)) (call $arg32 (local.get $c) (i32.const 5)))))
    )
    (return (i64.extend_i32_s (call $path_remove_directory (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $path_rename (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)) (call $arg32 (local.get $c) (i32.const 5)))))
    )
    (return (i64.extend_i32_s (call $path_symlink (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $path_unlink_file (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $poll_oneoff (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)))))
    )
    (return (i64.extend_i32_s (call $proc_raise (call $arg32 (local.get $c) (i32.const 0)))))
    )
    (return (i64.extend_i32_s (call $sched_yield)))
    )
    (return (i64.extend_i32_s (call $random_get (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (return (i64.extend_i32_s (call $sock_accept (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)))))
    )
    (return (i64.extend_i32_s (call $sock_recv (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)) (call $arg32 (local.get $c) (i32.const 5)))))
    )
    (return (i64.extend_i32_s (call $sock_send (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)) (call $arg32 (local.get $c) (i32.const 2)) (call $arg32 (local.get $c) (i32.const 3)) (call $arg32 (local.get $c) (i32.const 4)))))
    )
    (return (i64.extend_i32_s (call $sock_shutdown (call $arg32 (local.get $c) (i32.const 0)) (call $arg32 (local.get $c) (i32.const 1)))))
    )
    (i64.const -999))

  (func $run (result i32)
    (local $count i32) (local $i i32)
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 4096) (i32.const 65536)))
    (local.set $count (i32.load (i32.const 4100)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $count)))
        (i64.store
          (i32.add (i32.const 98304) (i32.shl (local.get $i) (i32.const 3)))
          (call $dispatch (i32.add (i32.const 4104) (i32.mul (local.get $i) (i32.const 56)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (drop (call $log (i32.const 0) (i32.const 98304) (i32.shl (local.get $count) (i32.const 3))))
    (i32.load (i32.const 4096)))

  (func (export "creature_handle") (param i32 i32) (result i32) (call $run))
  (func (export "creature_init") (result i32) (call $run))
  (func (export "creature_stop") (drop (call $run))))
