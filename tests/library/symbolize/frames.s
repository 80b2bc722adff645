# Functions of one-byte instructions. What they do is said by the tables alone.
    .text
    .macro begin name
    .balign 16
    .globl \name
    .hidden \name
    .type \name, %function
\name:
    .endm
    .macro finish name
    .size \name, . - \name
    .endm

    begin leaf
    .cfi_startproc
    nop
    .cfi_def_cfa_offset 136
    nop
    .cfi_endproc
    finish leaf

    begin framed
    .cfi_startproc
    nop
    .cfi_def_cfa_offset 16
    .cfi_offset 6, -16
    nop
    .cfi_def_cfa_register 6
    nop
    .cfi_def_cfa 7, 8
    nop
    .cfi_endproc
    finish framed

    begin realigned
    .cfi_startproc
    .cfi_def_cfa 10, 0
    nop
    .cfi_escape 0x0f, 3, 0x76, 0x78, 6
    nop
    .cfi_def_cfa 6, 32
    nop
    .cfi_endproc
    finish realigned

    begin elsewhere
    .cfi_startproc
    .cfi_offset 16, -16
    nop
    .cfi_endproc
    finish elsewhere

    begin outermost
    .cfi_startproc
    .cfi_undefined 16
    nop
    .cfi_endproc
    finish outermost

    begin stub
    .cfi_startproc
    .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
    .zero 16, 0x90
    .cfi_endproc
    finish stub

    begin endless
    .cfi_startproc
    .cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff
    nop
    .cfi_endproc
    finish endless

    begin bare
    .zero 32, 0x90
    finish bare

    begin initializer
    ret
    finish initializer

    begin stops
    .zero 11, 0x90
    .byte 0xe8, 0, 0, 0, 0
    finish stops

    begin behind_a_call
    ret
    finish behind_a_call
    .section .note.GNU-stack, "", %progbits
