//! The instructions that are measured, by the categories of Arafa et al.

/// Kinds of register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registers {
    /// 32-bit integers.
    B32,
    /// 64-bit integers.
    B64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Half precision; from compute capability 5.3 on.
    F16,
}

/// A PTX instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instruction {
    /// Its name in PTX.
    pub name: &'static str,
    /// The paper's category.
    pub category: &'static str,
    /// Its registers.
    pub registers: Registers,
    /// Operands after the destination: `x` itself, `y` the other of the chain, `z` a third value, `s`
    /// a small number in a 32-bit register.
    pub operands: &'static str,
    /// The paper's figure for a TITAN V, optimised and not, in microjoules (MTSM).
    pub published: Option<(f64, f64)>,
}

impl Instruction {
    /// Do devices of this compute capability (10 times major plus minor) have it?
    pub fn runs_on(&self, capability: u32) -> bool {
        self.registers != Registers::F16 || capability >= 53
    }
}

const INTEGER: &str = "integer";
const LOGIC: &str = "logic and shift";
const SINGLE: &str = "single precision";
const DOUBLE: &str = "double precision";
const HALF: &str = "half precision";
const MULTI: &str = "multi precision";
const SPECIAL: &str = "special functions";
const INTRINSIC: &str = "integer intrinsics";

const ADD: Option<(f64, f64)> = Some((0.0012, 0.2384));
const MUL: Option<(f64, f64)> = Some((0.0014, 0.4912));
const FMUL: Option<(f64, f64)> = Some((0.0014, 0.4797));
const DADD: Option<(f64, f64)> = Some((0.3567, 0.5114));
const HADD: Option<(f64, f64)> = Some((0.0624, 0.4656));
const CARRY: Option<(f64, f64)> = Some((0.0535, 0.4938));

const fn row(
    name: &'static str,
    category: &'static str,
    registers: Registers,
    operands: &'static str,
    published: Option<(f64, f64)>,
) -> Instruction {
    Instruction { name, category, registers, operands, published }
}

use Registers::{B32, B64, F16, F32, F64};

/// All instructions.
pub const INSTRUCTIONS: &[Instruction] = &[
    row("add.u32", INTEGER, B32, "xy", ADD),
    row("sub.u32", INTEGER, B32, "xy", ADD),
    row("min.u32", INTEGER, B32, "xy", ADD),
    row("max.u32", INTEGER, B32, "xy", ADD),
    row("min.s32", INTEGER, B32, "xy", ADD),
    row("mul.lo.u32", INTEGER, B32, "xy", MUL),
    row("mul.hi.u32", INTEGER, B32, "xy", None),
    row("mad.lo.u32", INTEGER, B32, "xyz", MUL),
    row("div.s32", INTEGER, B32, "xy", Some((4.0660, 27.0584))),
    row("rem.s32", INTEGER, B32, "xy", Some((4.0138, 25.1175))),
    row("div.u32", INTEGER, B32, "xy", Some((3.8706, 20.2517))),
    row("rem.u32", INTEGER, B32, "xy", Some((3.9471, 19.2906))),
    row("abs.s32", INTEGER, B32, "x", Some((0.0621, 1.4013))),
    row("neg.s32", INTEGER, B32, "x", None),
    row("add.u64", INTEGER, B64, "xy", None),
    row("sub.u64", INTEGER, B64, "xy", None),
    row("mul.lo.u64", INTEGER, B64, "xy", None),
    row("mad.lo.u64", INTEGER, B64, "xyz", None),
    row("div.u64", INTEGER, B64, "xy", None),
    row("rem.u64", INTEGER, B64, "xy", None),
    row("and.b32", LOGIC, B32, "xy", ADD),
    row("or.b32", LOGIC, B32, "xy", ADD),
    row("xor.b32", LOGIC, B32, "xy", ADD),
    row("not.b32", LOGIC, B32, "x", ADD),
    row("cnot.b32", LOGIC, B32, "x", Some((0.0077, 2.3174))),
    row("shl.b32", LOGIC, B32, "xs", ADD),
    row("shr.u32", LOGIC, B32, "xs", ADD),
    row("shf.l.wrap.b32", LOGIC, B32, "xys", None),
    row("prmt.b32", LOGIC, B32, "xys", None),
    row("add.f32", SINGLE, F32, "xy", ADD),
    row("sub.f32", SINGLE, F32, "xy", ADD),
    row("min.f32", SINGLE, F32, "xy", ADD),
    row("max.f32", SINGLE, F32, "xy", ADD),
    row("mul.f32", SINGLE, F32, "xy", FMUL),
    row("mad.rn.f32", SINGLE, F32, "xyz", FMUL),
    row("fma.rn.f32", SINGLE, F32, "xyz", FMUL),
    row("div.rn.f32", SINGLE, F32, "xy", Some((5.0355, 33.3816))),
    row("abs.f32", SINGLE, F32, "x", None),
    row("neg.f32", SINGLE, F32, "x", None),
    row("add.f64", DOUBLE, F64, "xy", DADD),
    row("sub.f64", DOUBLE, F64, "xy", DADD),
    row("min.f64", DOUBLE, F64, "xy", DADD),
    row("max.f64", DOUBLE, F64, "xy", DADD),
    row("mul.f64", DOUBLE, F64, "xy", None),
    row("fma.rn.f64", DOUBLE, F64, "xyz", None),
    row("div.rn.f64", DOUBLE, F64, "xy", Some((3.6828, 30.4121))),
    row("add.f16", HALF, F16, "xy", HADD),
    row("sub.f16", HALF, F16, "xy", HADD),
    row("mul.f16", HALF, F16, "xy", HADD),
    row("fma.rn.f16", HALF, F16, "xyz", None),
    row("add.cc.u32", MULTI, B32, "xy", CARRY),
    row("addc.u32", MULTI, B32, "xy", CARRY),
    row("sub.cc.u32", MULTI, B32, "xy", CARRY),
    row("subc.u32", MULTI, B32, "xy", Some((0.089, 0.9525))),
    row("mad.lo.cc.u32", MULTI, B32, "xyz", Some((0.0631, 0.5043))),
    row("madc.lo.u32", MULTI, B32, "xyz", Some((0.0631, 0.5043))),
    row("rcp.rn.f32", SPECIAL, F32, "x", Some((2.4270, 10.0538))),
    row("rcp.approx.f32", SPECIAL, F32, "x", None),
    row("sqrt.rn.f32", SPECIAL, F32, "x", Some((2.4219, 10.2700))),
    row("sqrt.approx.f32", SPECIAL, F32, "x", Some((1.2076, 8.2517))),
    row("rsqrt.approx.f32", SPECIAL, F32, "x", Some((1.2432, 8.2320))),
    row("sin.approx.f32", SPECIAL, F32, "x", Some((0.5867, 0.9788))),
    row("cos.approx.f32", SPECIAL, F32, "x", Some((0.5867, 0.9788))),
    row("lg2.approx.f32", SPECIAL, F32, "x", Some((1.2287, 8.2500))),
    row("ex2.approx.f32", SPECIAL, F32, "x", Some((0.4709, 7.2030))),
    row("copysign.f32", SPECIAL, F32, "xy", Some((0.0880, 2.3490))),
    row("rcp.rn.f64", SPECIAL, F64, "x", None),
    row("sqrt.rn.f64", SPECIAL, F64, "x", None),
    row("mul24.lo.u32", INTRINSIC, B32, "xy", Some((0.2119, 2.3249))),
    row("mad24.lo.u32", INTRINSIC, B32, "xyz", Some((0.2119, 2.3249))),
    row("sad.u32", INTRINSIC, B32, "xyz", Some((0.0038, 0.5029))),
    row("popc.b32", INTRINSIC, B32, "x", Some((0.3990, 1.4601))),
    row("clz.b32", INTRINSIC, B32, "x", Some((0.5657, 0.8961))),
    row("bfind.u32", INTRINSIC, B32, "x", Some((0.2902, 0.4582))),
    row("brev.b32", INTRINSIC, B32, "x", None),
    row("bfe.u32", INTRINSIC, B32, "xss", None),
    row("bfi.b32", INTRINSIC, B32, "xyss", None),
];
